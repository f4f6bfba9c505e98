// One kernel: its loops at a glance, as text, after lowering, and the steps of its schedule.

const FORMS = { outline: "Outline", scheduled: "Loops", trace: "Steps", flat: "Lowered" };
let form = "outline";

function showLoops() {
  const choice = byId("kernel-choice");
  choice.append(...facts.kernels.map((k, n) => html("option", { value: n }, `${k.number} · ${k.name}${k.timing ? ` · ${percentText(shareOf(k))}` : ""}`)));
  choice.addEventListener("change", () => choose(Number(choice.value), null, "loops"));
  const press = switcher(byId("code-tabs"), FORMS, (key) => { form = key; showCode(); });
  byId("accesses").addEventListener("change", showCode);
  byId("wrap").addEventListener("change", () => byId("code").classList.toggle("wrapped", byId("wrap").checked));
  byId("copy").addEventListener("click", copyCode);
  onChoice(showCode);
  press("outline");
}

function currentKernel() {
  return facts.kernels[Math.max(0, chosen.kernel)];
}

function showCode() {
  const k = currentKernel();
  byId("kernel-choice").value = String(Math.max(0, chosen.kernel));
  byId("kernel-facts").textContent = [
    plural(k.calls, "call"), k.timing ? `${secondsText(k.timing.seconds)} each` : "", `${bytesText(k.code)} of code`, `made in ${secondsText(k.made)}`,
    `reads ${k.inputs.join(", ")}`, `writes ${k.outputs.join(", ")}`,
  ].filter(Boolean).join(" · ");
  byId("accesses-label").hidden = form !== "scheduled";
  byId("wrap-label").hidden = form === "outline";
  byId("copy").hidden = form === "outline";
  byId("code").replaceChildren(form === "outline" ? outlined(k.outline) : listed(k[form]));
  byId("code").scrollTop = 0;
}

/** Returns a text as numbered lines; what blocks read and write only where it is asked for. */
function listed(text) {
  const hide = form === "scheduled" && !byId("accesses").checked;
  const lines = text.replace(/\n+$/, "").split("\n").map((line, n) => [line, n + 1])
    .filter(([line]) => !(hide && /^ *(reads|writes)\(/.test(line)));
  return html("pre", {}, lines.map(([line, n]) => html("div", { class: "line", "data-n": n }, coloured(line), "\n")));
}

function outlined({ buffers, items }) {
  const words = { range: "in order", parallel: "in parallel", vectorized: "as vectors", unrolled: "unrolled", bound: "on a grid" };
  const used = new Set();
  const visit = (all) => all.forEach((item) => { item.loops.forEach(([kind]) => used.add(kind)); visit(item.inside); });
  visit(items);
  return html("div", { class: "outline" },
    html("div", { class: "legend" }, Object.keys(words).filter((k) => used.has(k)).map((k) => html("span", { class: `loop l-${k}` }, words[k]))),
    tree(items),
    buffers.length ? html("div", { class: "buffers" }, html("h4", {}, "Works in"),
      html("dl", {}, buffers.flatMap((b) => [html("dt", {}, b.name), html("dd", {}, `${b.type} `, html("span", { class: "soft" }, b.scope))]))) : "");
}

function tree(items) {
  return html("ul", {}, items.map((item) => {
    const loops = item.loops.map(([kind, name, extent]) =>
      html("span", { class: `loop l-${kind}${extent === "1" ? " once" : ""}`, title: `${kind} ${name}: ${extent} times` }, name, html("i", {}, ` ${extent}`)));
    const does = item.block !== undefined ? [html("b", {}, item.block), html("span", { class: "soft" }, blockText(item))]
      : item.code ? [html("code", {}, item.code)] : [];
    return html("li", {}, html("div", { class: "row" }, loops, does.length ? html("span", { class: "does" }, does) : ""), item.inside.length ? tree(item.inside) : "");
  }));
}

function blockText({ block, reads, writes, reduces }) {
  const from = reads.filter((r) => !writes.includes(r));
  return [writes.some((w) => w !== block) ? ` writes ${writes.join(", ")}` : "", from.length ? ` from ${from.join(", ")}` : "",
    reduces.length ? ` · reduces ${reduces.join(", ")}` : ""].join("");
}

async function copyCode() {
  const button = byId("copy");
  try {
    await navigator.clipboard.writeText(currentKernel()[form]);
    button.textContent = "Copied";
  } catch { // where the browser does not let a page do that, the text is at least selected
    getSelection().selectAllChildren(byId("code"));
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
