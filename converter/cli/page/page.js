// SPDX-License-Identifier: Apache-2.0
"use strict";
(() => {
  const make = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // What is known of a box, on hover, tap or focus. The title, which browsers show late, is taken over.
  const tip = make("div", "tip");
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  let shown = null;

  const hide = () => {
    shown = null;
    tip.classList.remove("open");
  };

  const show = (box) => {
    if (!box.dataset.tip) {
      const title = box.querySelector("title");
      if (!title) return;
      box.dataset.tip = title.textContent;
      title.remove();
    }
    const [head, ...lines] = box.dataset.tip.split("\n");
    const list = make("dl");
    for (const line of lines) {
      const at = line.indexOf(": ");
      list.append(make("dt", "", line.slice(0, at)), make("dd", "", line.slice(at + 2)));
    }
    tip.replaceChildren(make("strong", "", head), list);
    tip.classList.add("open");
    const place = box.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, place.left + place.width / 2 - size.width / 2), innerWidth - size.width - 8);
    const above = place.top - size.height - 8;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : Math.min(place.bottom + 8, innerHeight - size.height - 8)}px`;
    shown = box;
  };

  const boxOf = (event) => (event.target.closest ? event.target.closest("g.box") : null);
  document.addEventListener("pointerover", (event) => {
    const box = boxOf(event);
    if (box) show(box);
    else if (event.pointerType === "mouse") hide();
  });
  document.addEventListener("focusin", (event) => (boxOf(event) ? show(boxOf(event)) : hide()));
  document.addEventListener("click", (event) => (boxOf(event) ? show(boxOf(event)) : hide()));
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("scroll", () => shown && hide(), { passive: true, capture: true });

  // Commands are copied with one press.
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        const range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        if (!document.execCommand("copy")) return;
      }
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
  }

  // Long lists of nodes are data until somebody asks.
  const most = 500;
  for (const holder of document.querySelectorAll(".places[data-names]")) {
    const list = holder.querySelector("ul");
    const first = [...list.children].map((item) => item.textContent);
    const field = make("input", "filter");
    field.type = "search";
    field.placeholder = "Filter by name";
    field.setAttribute("aria-label", "Filter the nodes by name");
    const said = make("p", "quiet");
    said.setAttribute("role", "status");
    let names = null;
    const fill = () => {
      names = names || JSON.parse(document.getElementById(holder.dataset.names).textContent);
      const word = field.value.trim().toLowerCase();
      const found = word ? names.filter((name) => name.toLowerCase().includes(word)) : names;
      list.replaceChildren(...found.slice(0, most).map((name) => make("li", "", name)));
      said.textContent =
        found.length > most ? `${most} of ${found.length.toLocaleString("en")} are shown.` : word ? `${found.length} found.` : "";
    };
    field.addEventListener("input", fill);
    holder.querySelector(".rest").replaceWith(said);
    holder.prepend(field);
    holder.addEventListener("toggle", () => holder.open && !names && fill());
    void first;
  }
})();
