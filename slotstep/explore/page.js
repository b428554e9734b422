"use strict";
const form = document.querySelector("form");
const frame = document.querySelector("iframe");
const said = document.querySelector("#said");
const error = document.querySelector("#error");
const fields = [...form.querySelectorAll("[data-own]")];
const reach = Number(form.dataset.reach);
let wanted = false;
let pinning = false;
let busy = false;
let timer = 0;
let count = 0;
let place = 0;

frame.addEventListener("load", () => frame.contentWindow.scrollTo(0, place));

const run = async () => {
  if (busy) return;
  busy = true;
  while (wanted) {
    wanted = false;
    const pin = pinning;
    pinning = false;
    said.textContent = "Simulating.";
    const values = Object.fromEntries(fields.filter((one) => one.value !== one.dataset.own).map((one) => [one.id, one.value]));
    let answer;
    try {
      answer = await (await fetch("run", { method: "POST", body: JSON.stringify({ values, pin }) })).json();
    } catch {
      answer = { error: "slotstep explore does not answer: is it still running?" };
    }
    error.hidden = answer.error === undefined;
    error.textContent = answer.error ?? "";
    said.textContent = answer.said ?? "The report is of the values before.";
    if (answer.error === undefined) {
      form.querySelector("pre").textContent = answer.scenario;
      for (const field of fields.filter((one) => values[one.id] === undefined && one.value === one.dataset.own)) {
        field.value = field.dataset.own = answer.values[field.id]; // what follows from another value
      }
      place = frame.contentWindow.scrollY;
      count += 1;
      frame.contentWindow.location.replace(`report?${count}`);
    }
  }
  busy = false;
};
const change = () => {
  wanted = true;
  clearTimeout(timer);
  timer = setTimeout(run, 200);
};
for (const slider of form.querySelectorAll("input[type=range]")) {
  const field = slider.nextElementSibling;
  slider.addEventListener("input", () => {
    const value = Number(field.dataset.own) * reach ** (Number(slider.value) / 100);
    field.value = slider.value === "0" ? field.dataset.own
      : slider.dataset.whole === undefined ? String(Number(value.toPrecision(3))) : String(Math.max(1, Math.round(value)));
    change();
  });
  field.addEventListener("input", () => {
    const share = Math.log(Number(field.value) / Number(field.dataset.own)) / Math.log(reach);
    if (Number.isFinite(share)) slider.value = String(Math.round(100 * share));
  });
}
for (const field of fields) field.addEventListener("input", change);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => {
  for (const field of form.querySelectorAll("input[type=text]")) field.dataset.own = field.defaultValue;
  setTimeout(change);
});
document.querySelector("#pin").addEventListener("click", () => { pinning = true; change(); });
document.querySelector("#copy").addEventListener("click", async () => {
  const text = form.querySelector("pre");
  try {
    await navigator.clipboard.writeText(text.textContent);
    said.textContent = "Copied.";
  } catch {
    form.querySelector("details").open = true;
    getSelection().selectAllChildren(text);
    said.textContent = "The scenario is selected: copy it.";
  }
});
