"use strict";
document.documentElement.classList.add("js");

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const rows = [...table.tBodies[0].rows];
      const numeric = head.dataset.kind === "number";
      const key = (row) => row.cells[column].dataset.key;
      const compare = numeric
        ? (a, b) => (Number(key(a)) > Number(key(b))) - (Number(key(a)) < Number(key(b)))
        : (a, b) => key(a).localeCompare(key(b));
      rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      table.tBodies[0].append(...rows);
    });
  });
}

const timelines = [...document.querySelectorAll("svg.timeline")];
if (timelines.length) {
  const whole = 1000000;
  const least = 200;
  const span = Number(document.querySelector(".timelines").dataset.span);
  const shown = document.querySelector(".zoom output");
  let from = 0;
  let width = whole;

  const words = (seconds, step) => {
    const [unit, name] = step >= 1 ? [1, "s"] : step >= 1e-3 ? [1e-3, "ms"] : step >= 1e-6 ? [1e-6, "us"] : [1e-9, "ns"];
    return `${Number((seconds / unit).toFixed(6)).toLocaleString("en-US", { maximumFractionDigits: 6 })} ${name}`;
  };
  const draw = () => {
    width = Math.min(whole, Math.max(least, width));
    from = Math.min(whole - width, Math.max(0, from));
    const low = (from / whole) * span;
    const high = ((from + width) / whole) * span;
    const rough = (high - low) / 9;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)) * power;
    for (const figure of timelines) {
      const bars = figure.querySelector(".bars");
      bars.setAttribute("viewBox", `${from} 0 ${width} ${bars.viewBox.baseVal.height}`);
      const axis = figure.querySelector(".times");
      const left = Number(axis.dataset.left);
      const wide = Number(axis.dataset.width);
      const top = Number(axis.dataset.top);
      axis.replaceChildren();
      for (let place = Math.ceil(low / step - 1e-9); place * step <= high * (1 + 1e-12); place += 1) {
        const at = left + ((place * step - low) / (high - low)) * wide;
        const line = document.createElementNS(figure.namespaceURI, "line");
        Object.entries({ x1: at, x2: at, y1: top, y2: top + 4, class: "axis" }).forEach(([k, v]) => line.setAttribute(k, v));
        const label = document.createElementNS(figure.namespaceURI, "text");
        Object.entries({ x: at, y: top + 16, "text-anchor": "middle", class: "t" }).forEach(([k, v]) => label.setAttribute(k, v));
        label.textContent = words(place * step, step);
        axis.append(line, label);
      }
    }
    shown.textContent = width === whole ? "all that is drawn" : `${words(low, step)} to ${words(high, step)}`;
  };
  const zoom = (factor, at = 0.5) => {
    const middle = from + at * width;
    const next = Math.min(whole, Math.max(least, width * factor));
    from = middle - at * next;
    width = next;
    draw();
  };
  const acts = {
    in: () => zoom(0.5),
    out: () => zoom(2),
    left: () => { from -= width / 3; draw(); },
    right: () => { from += width / 3; draw(); },
    all: () => { from = 0; width = whole; draw(); },
  };
  for (const button of document.querySelectorAll(".zoom button")) button.addEventListener("click", acts[button.dataset.act]);
  for (const figure of timelines) {
    const bars = figure.querySelector(".bars");
    const share = (event) => {
      const box = bars.getBoundingClientRect();
      const drawn = figure.getBoundingClientRect();
      const left = drawn.left + (Number(figure.querySelector(".times").dataset.left) / figure.viewBox.baseVal.width) * drawn.width;
      const wide = (Number(figure.querySelector(".times").dataset.width) / figure.viewBox.baseVal.width) * drawn.width;
      return [Math.min(1, Math.max(0, (event.clientX - left) / wide)), wide || box.width];
    };
    figure.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, share(event)[0]);
    }, { passive: false });
    figure.addEventListener("dblclick", (event) => zoom(0.5, share(event)[0]));
    figure.addEventListener("pointermove", (event) => {
      if (!(event.buttons & 1) || width === whole) return;
      from -= (event.movementX / share(event)[1]) * width;
      draw();
    });
  }
  draw();
}
