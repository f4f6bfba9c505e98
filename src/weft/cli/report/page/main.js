// The page's head, its colours, and the order in which its parts are made.

const MOST_SPECS = 8; // inputs and outputs that are shown at once

function showSummary() {
  const z = facts.sizes, stages = Object.entries(facts.stages).sort((a, b) => b[1] - a[1]);
  const tiles = [
    timed ? ["Time", secondsText(total), `of all kernels on one core; ${secondsText(limitOfAll())} at its limits`] : null,
    ["Work", `${z.nodes} → ${z.calls}`, `nodes of the model to calls of ${plural(z.kernels, "kernel")}`],
    ["Weights", bytesText(z.constants), `as the kernels read them; ${bytesText(z.weights)} in the model`],
    ["Arena", bytesText(z.arena), z.arena > z.bound ? `at least ${bytesText(z.bound)} are needed` : "the least that is possible"],
    ["Code", bytesText(z.code), `for ${facts.target}`],
    ["Compiled in", secondsText(stages.reduce((s, [, t]) => s + t, 0)), (facts.cached ? `${facts.cached} of ${plural(z.kernels, "kernel")} came from the cache; ` : "") + stages.slice(0, 3).map(([name, t]) => `${name} ${secondsText(t)}`).join(", ")],
  ];
  const signature = [...facts.inputs.map((t) => ["in", t]), ...facts.outputs.map((t) => ["out", t])]
    .map(([side, text]) => html("span", {}, html("i", {}, side), text));
  const rest = signature.splice(signature.length > MOST_SPECS ? MOST_SPECS - 1 : MOST_SPECS);
  const more = html("button", { type: "button", class: "link", onclick: () => more.replaceWith(...rest) }, `and ${rest.length} more`);
  byId("summary").append(
    html("h1", {}, facts.title),
    html("p", { class: "signature" }, signature, rest.length ? more : ""),
    html("div", { class: "tiles" }, tiles.filter(Boolean).map(([name, value, note]) =>
      html("div", { class: "card tile" }, html("span", {}, name), html("strong", {}, value), html("small", {}, note)))));
  const { cpu, machine, system } = facts.machine;
  byId("foot").textContent = `Weft ${facts.version} · ${facts.target} · made on ${[cpu, machine, system].filter(Boolean).join(", ")}`;
}

/** Lets the reader choose the colours; the choice is kept where the browser allows it. */
function chooseTheme() {
  const button = byId("theme"), themes = ["auto", "dark", "light"];
  const kept = { get: () => { try { return localStorage.getItem("weft-theme"); } catch { return null; } },
    set: (t) => { try { localStorage.setItem("weft-theme", t); } catch { /* a page from a file may not keep anything */ } } };
  const use = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme[0].toUpperCase() + theme.slice(1);
  };
  use(themes.includes(kept.get()) ? kept.get() : "auto");
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length];
    use(next);
    kept.set(next);
  });
}

/** Shows in the head which section is read. */
function followSections() {
  const links = [...document.querySelectorAll("nav a")];
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) links.find((a) => a.hash === `#${e.target.id}`)?.classList.toggle("here", e.isIntersecting);
  }, { rootMargin: "-30% 0px -60% 0px" });
  for (const a of links) seen.observe(document.querySelector(a.hash));
}

chooseTheme();
showSummary();
const panes = showGraphs();
showMemory();
followSections();
if (facts.kernels.length) {
  showKernels();
  showLoops();
  choose(0, null, "begin");
  const first = panes.after.drawing.boxes.findIndex((b) => b.calls.includes(chosen.calls[0]));
  showDetails(panes.after.drawing.boxes[first]);
  for (const pane of [panes.before, panes.after]) pane.begin();
} else {
  for (const id of ["kernels", "loops"]) byId(id).hidden = true; // the outputs are inputs or constants
}
document.documentElement.dataset.ready = "yes";
