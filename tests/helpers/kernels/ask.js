// SPDX-License-Identifier: Apache-2.0
// Asks an onnxruntime of node what ask.py asks one of Python: node ask.js PACKAGE PROBES ANSWERS OPSET ML.
// For releases that have no wheel any more; they list no kernels.
"use strict";

const fs = require("fs");

const [folder, probesPath, answersPath, opset, ml] = process.argv.slice(2);
const ort = require(folder);
const MISSING = ["Could not find an implementation", "NOT_IMPLEMENTED", "not an implementation"];
const options = { graphOptimizationLevel: "disabled", logSeverityLevel: 4, intraOpNumThreads: 1, interOpNumThreads: 1 };

async function answer(message) {
  try {
    const session = await ort.InferenceSession.create(message, options);
    if (session.release) await session.release();
  } catch (error) {
    const text = String(error).split(/\s+/).join(" ");
    return MISSING.some((part) => text.includes(part)) ? "no kernel" : text.slice(0, 300);
  }
  return "runs";
}

async function main() {
  const probes = JSON.parse(fs.readFileSync(probesPath, "utf8"));
  const done = fs.existsSync(answersPath) ? fs.readFileSync(answersPath, "utf8").trimEnd().split("\n") : [];
  const file = fs.openSync(answersPath, "a");
  if (!done.length) fs.writeSync(file, "null\n");
  else if (done[done.length - 1].split("\t").length === 2) fs.writeSync(file, "\tcrashed\n");
  const start = done.length > 1 ? Number(done[done.length - 1].split("\t")[0]) + 1 : 0;

  for (const [index, [domain, version, first, last, every, text]] of probes.entries()) {
    if (index < start || version > Number(domain ? ml : opset)) continue;
    const message = Buffer.from(text, "base64");
    const told = async (stamp) => {
      fs.writeSync(file, `${index}\t${stamp}`);
      message[message.length - 1] = stamp;
      const came = await answer(message);
      fs.writeSync(file, `\t${came}\n`);
      return came;
    };
    const [low, high] = domain ? [Number(opset), Number(opset)] : [first, Math.min(last, Number(opset))];
    const ends = new Set();
    for (const stamp of new Set([low, high])) ends.add(await told(stamp));
    if (every || ends.size > 1) {
      for (let stamp = low + 1; stamp < high; stamp++) await told(stamp);
    }
  }
}

main();
