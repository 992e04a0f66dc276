// SPDX-License-Identifier: Apache-2.0
"use strict";
(() => {
  const table = document.querySelector(".models table");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, text: row.textContent.toLowerCase(), status: row.dataset.status }));
  const word = document.querySelector("#word");
  const status = document.querySelector("#status");
  const said = document.querySelector("#said");
  const collator = new Intl.Collator("en", { numeric: true });

  const fill = () => {
    const wanted = word.value.trim().toLowerCase();
    const found = rows.filter((one) => one.text.includes(wanted) && (!status.value || one.status === status.value));
    body.replaceChildren(...found.map((one) => one.row));
    said.textContent = found.length < rows.length ? `${found.length} of ${rows.length} are shown.` : "";
  };
  word.addEventListener("input", fill);
  status.addEventListener("change", fill);
  document.querySelector(".controls").hidden = false;

  const value = (one, column) => one.row.cells[column].dataset.value ?? one.row.cells[column].textContent;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numbers = head.classList.contains("number");
      const compare = (a, b) => (numbers ? Number(a) - Number(b) : collator.compare(a, b));
      rows.sort((a, b) => (down ? -1 : 1) * compare(value(a, column), value(b, column)));
      fill();
    });
  });
})();
