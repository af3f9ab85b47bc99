"use strict";
(() => {
  const root = document.documentElement;
  const one = (id) => document.getElementById(id);
  one("tools").hidden = false;

  // The theme is remembered if the browser lets a file store anything.
  const theme = one("theme");
  const wear = (name) => { if (name) root.dataset.theme = name; else delete root.dataset.theme; };
  try { theme.value = localStorage.getItem("dunnage-theme") ?? ""; } catch { theme.value = ""; }
  wear(theme.value);
  theme.addEventListener("change", () => {
    wear(theme.value);
    try { localStorage.setItem("dunnage-theme", theme.value); } catch { /* It is lost with the page. */ }
  });

  // Shows or hides subjects everywhere at once.
  const boxes = [...one("subjects").querySelectorAll("input")];
  const marked = [...document.querySelectorAll("[data-subject], [data-against]")];
  const show = () => {
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.dataset.label));
    for (const mark of marked) {
      mark.classList.toggle("off", hidden.has(mark.dataset.subject) || hidden.has(mark.dataset.against));
    }
    one("shown").textContent = `${boxes.length - hidden.size} of ${boxes.length}`;
  };
  boxes.forEach((box) => box.addEventListener("change", show));
  const all = (checked) => { boxes.forEach((box) => { box.checked = checked; }); show(); };
  one("all").addEventListener("click", () => all(true));
  one("none").addEventListener("click", () => all(false));
  document.addEventListener("keydown", (event) => {
    const panel = one("subjects");
    if (event.key === "Escape" && panel.open) { panel.open = false; panel.querySelector("summary").focus(); }
  });
  document.addEventListener("click", (event) => {
    if (!one("subjects").contains(event.target)) one("subjects").open = false;
  });

  // A click on a heading sorts its table: ascending, descending, then in the original order.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return null;
    if (cell.dataset.key !== undefined) return Number(cell.dataset.key);
    const text = (cell.querySelector("span, a") ?? cell).textContent.trim();
    return text === "" || text === "–" ? null : text;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  for (const table of document.querySelectorAll("table")) {
    const heads = [...[...table.tHead.rows].at(-1).cells];
    const body = table.tBodies[0];
    const first = [...body.rows];
    if (first.length < 2) continue;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.ariaSort];
        heads.forEach((other) => { other.ariaSort = "none"; });
        head.ariaSort = next;
        const rows = [...first];
        if (next !== "none") {
          const sign = next === "ascending" ? 1 : -1;
          rows.sort((a, b) => {
            const [one, other] = [keyOf(a, column), keyOf(b, column)];
            // Missing values come last in both directions.
            if (one === null || other === null) return (one === null) - (other === null);
            return sign * compare(one, other);
          });
        }
        body.append(...rows);
      });
    });
  }

  // Values under the pointer.
  const tip = one("tip");
  const tell = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 4))}px`;
    tip.style.top = `${Math.max(4, y - height - 10)}px`;
  };
  const quiet = () => { tip.hidden = true; };
  const digits = (value) => {
    const size = Math.abs(value);
    return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
  };
  const heights = new WeakMap();
  const medians = (svg) => {
    if (!heights.has(svg)) {
      const points = new Map();
      const path = svg.querySelector(".line").getAttribute("d");
      for (const [, at, height] of path.matchAll(/[ML](\d+)\.5 ([\d.]+)/g)) points.set(Number(at), Number(height));
      heights.set(svg, points);
    }
    return heights.get(svg);
  };
  const round = (svg, event) => {
    const { left, width } = svg.getBoundingClientRect();
    const { axis, divisor, symbol, step } = svg.dataset;
    const [low, high] = [Number(svg.dataset.low), Number(svg.dataset.high)];
    const at = Math.floor(((event.clientX - left) / width) * svg.viewBox.baseVal.width);
    const height = medians(svg).get(at);
    const from = at * Number(step) + 1;
    const rounds = step === "1" ? `round ${from}` : `rounds ${from} to ${from + Number(step) - 1}`;
    if (height === undefined) return `${rounds}: no value`;
    const share = 1 - height / 100;
    const value = (axis === "log" ? low * (high / low) ** share : low + share * (high - low)) / Number(divisor);
    return `${rounds}: ${digits(value)} ${symbol}`.trimEnd();
  };
  document.addEventListener("pointermove", (event) => {
    const svg = event.target.closest?.(".course svg");
    if (svg) return tell(round(svg, event), event.clientX, event.clientY);
    const mark = event.target.closest?.("svg g, svg path, svg circle, svg rect, svg line");
    const title = mark && [...mark.children].find((child) => child.localName === "title");
    if (title) return tell(title.textContent, event.clientX, event.clientY);
    return quiet();
  });
  document.addEventListener("pointerleave", quiet);

  // Paper cannot be unfolded. The numbers of pictures are not printed.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("main details:not([open], .data), .programs:not([open])")];
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => { folded.forEach((part) => { part.open = false; }); });
})();
