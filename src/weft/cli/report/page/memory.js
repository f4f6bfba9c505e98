// The arena as a picture: from left to right the calls, from the bottom to the top the addresses.

const LEAST_STEP = 6; // pixels of a call, below which the picture scrolls

function showMemory() {
  const m = facts.memory, steps = facts.calls.length;
  const spare = m.size > m.bound ? `; no plan can be below ${bytesText(m.bound)}` : ", as little as any plan can take";
  const sum = m.buffers.reduce((s, b) => s + b.bytes, 0);
  byId("memory-note").textContent = m.buffers.length
    ? `${plural(m.buffers.length, "buffer")} of ${bytesText(sum)} in an arena of ${bytesText(m.size)}${spare}. Inputs, outputs and weights are elsewhere.`
    : "Nothing is in the arena: the model's inputs, outputs and weights are all the memory that its kernels need.";
  if (!m.buffers.length) {
    byId("arena").parentElement.hidden = true;
    return;
  }
  byId("memory-legend").append(html("span", { class: "kind b-value" }, "what kernels hand each other"),
    html("span", { class: "kind b-work" }, "what a kernel works in"));
  drawInto(byId("arena"), (width) => drawArena(Math.max(width, 60 + steps * LEAST_STEP)));
  onChoice(markBuffers);
}

function drawArena(width) {
  const m = facts.memory, steps = facts.calls.length;
  const height = Math.max(240, Math.min(430, width * 0.5)), edge = { left: 58, right: 10, top: 12, bottom: 38 };
  const step = (width - edge.left - edge.right) / steps;
  const X = (s) => edge.left + s * step, Y = (a) => height - edge.bottom - (a / m.size) * (height - edge.top - edge.bottom);
  const grid = svg("g", { class: "grid" });
  for (const a of addressTicks(m.size)) {
    grid.append(svg("line", { x1: edge.left, x2: width - edge.right, y1: Y(a), y2: Y(a) }),
      svg("text", { x: edge.left - 7, y: Y(a) + 4, "text-anchor": "end" }, a ? bytesText(a) : "0"));
  }
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((n) => n * step >= 26) ?? 1000;
  for (let s = 0; s < steps; s += every) grid.append(svg("text", { x: X(s + 0.5), y: height - edge.bottom + 16, "text-anchor": "middle" }, String(s)));
  grid.append(svg("text", { x: (edge.left + width - edge.right) / 2, y: height - 5, "text-anchor": "middle" }, "call"));
  if (m.bound < m.size) grid.append(svg("line", { class: "bound", x1: edge.left, x2: width - edge.right, y1: Y(m.bound), y2: Y(m.bound) }));
  const columns = facts.calls.map((c, n) => {
    const column = svg("rect", { class: "column", "data-call": n, x: X(n), y: edge.top, width: step, height: height - edge.top - edge.bottom });
    tip(column, () => [`call ${n}: ${facts.kernels[c.kernel].name}`, c.source]);
    column.addEventListener("click", () => choose(c.kernel, [n], "memory"));
    return column;
  });
  const boxes = m.buffers.map((b, n) => {
    const x = X(b.first) + 0.75, y = Y(b.offset + b.bytes) + 0.75;
    const w = Math.max(1, X(b.last + 1) - X(b.first) - 1.5), h = Math.max(1, Y(b.offset) - Y(b.offset + b.bytes) - 1.5);
    const g = svg("g", { class: `buffer ${b.workspace ? "b-work" : "b-value"}`, "data-buffer": n, onclick: () => choose(facts.calls[b.first].kernel, [b.first], "memory") },
      svg("rect", { x, y, width: w, height: h, rx: Math.min(3, w / 4, h / 4) }));
    const text = b.workspace ? "" : b.name, room = Math.floor((w - 10) / 6.3);
    if (h > 15 && room >= 4 && text) g.append(svg("text", { x: x + 6, y: y + h / 2 + 4 }, text.length > room ? `${text.slice(0, room - 1)}…` : text));
    tip(g, [b.name, b.type, `${bytesText(b.bytes)} from ${bytesText(b.offset)}`,
      b.first === b.last ? `call ${b.first}` : `written by call ${b.first}, last read by call ${b.last}`,
      b.later.length ? `then holds ${b.later.join(", ")}` : ""]);
    return g;
  });
  byId("arena").replaceChildren(svg("svg", { width, height, class: "chart", role: "img", "aria-label": "Buffers by address over the calls" },
    grid, svg("g", {}, columns), svg("g", {}, boxes)));
  markBuffers();
}

/** Returns addresses at even distances, whole in their unit. */
function addressTicks(size) {
  const unit = 1024 ** Math.floor(Math.log(Math.max(1, size)) / Math.log(1024));
  const step = unit * ([0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].find((s) => size / (s * unit) <= 6) ?? 1000);
  return Array.from({ length: Math.floor(size / step) + 1 }, (_, n) => Math.round(n * step));
}

function markBuffers() {
  document.querySelectorAll(".column").forEach((c) => c.classList.toggle("chosen", chosen.calls.includes(Number(c.dataset.call))));
}
