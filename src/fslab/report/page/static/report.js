// Draws the figures when they come into view, sorts tables, unpacks what is packed. Asks nothing of anybody.
"use strict";
(() => {
  const state = { values: "absolute", scale: "linear", bytes: "decimal" };
  const errors = [];

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  // ---- figures
  const RATIO = { value: "value_ratio", median: "median_ratio", low: "low_ratio", high: "high_ratio" };

  function channels(spec, names, change) {
    const encodings = [spec.encoding, ...(spec.layer || []).map((layer) => layer.encoding)];
    for (const encoding of encodings) for (const name of names) if (encoding && encoding[name]) change(encoding[name]);
  }

  // Legends do not wrap by themselves: as many columns as the longest label leaves room for, beside the names of an axis,
  // which take at most half of the page, or its numbers (80 px), and no wider label than that.
  function legend(spec, width) {
    const longest = (texts) => 7 * Math.max(1, ...texts.map((text) => String(text).length));
    const layers = [spec, spec.spec, ...(spec.layer || [])].filter((each) => each && each.encoding);
    const labels = layers.flatMap(({ encoding }) => [encoding.color, encoding.shape, encoding.fill, encoding.stroke])
      .flatMap((channel) => (channel && channel.scale && channel.scale.domain) || []);
    const named = layers.map(({ encoding }) => encoding.y).filter((y) => y && y.axis && y.axis.labelLimit);
    for (const { axis } of named) axis.labelLimit = Math.min(axis.labelLimit, width / 2);
    const room = width - Math.max(80, ...named.map(({ axis, sort }) => Math.min(axis.labelLimit, longest(sort || [])) + 10));
    const columns = Math.max(1, Math.min(4, Math.floor(room / (longest(labels) + 32))));
    spec.config = { ...spec.config, legend: { ...spec.config.legend, columns, labelLimit: Math.min(320, room - 40) } };
  }

  function prepared(spec, width) {
    const made = structuredClone(spec);
    legend(made, width);
    if (made.spec) made.spec.width = "container"; else if (typeof made.width === "number") { made.width = "container"; made.autosize = { type: "fit-x", contains: "padding" }; }
    for (const param of made.params || []) if (param.name === "binary") param.value = state.bytes === "binary";
    const turn = (made.usermeta || {}).fslab;
    if (turn) {
      const told = turn[state.values] || turn.absolute;
      channels(made, [turn.channel, turn.channel + "2"], (channel) => {
        if (state.values === "ratio" && turn.ratio && RATIO[channel.field]) channel.field = RATIO[channel.field];
        if (told && channel.axis) { channel.axis = { ...channel.axis, labelExpr: told.labelExpr }; channel.title = told.title; }
        if (state.scale === "log" && channel.type) {
          channel.scale = { ...channel.scale, type: "log", zero: false };
          channel.axis = { ...channel.axis, gridOpacity: { condition: { test: "abs(round(log(datum.value) / LN10) - log(datum.value) / LN10) < 0.001", value: 0.9 }, value: 0.25 } };
        }
      });
    }
    return made;
  }

  async function draw(figure) {
    const canvas = figure.querySelector(".canvas");
    const spec = prepared(JSON.parse(figure.querySelector(".spec").textContent), canvas.clientWidth);
    // A panel within panels cannot take its container's width by itself.
    if (spec.spec) spec.spec.width = Math.max(160, canvas.clientWidth - 90);
    figure.dataset.drawn = "yes";
    try {
      const view = await vegaEmbed(canvas, spec, { renderer: "svg", actions: false, ast: true, defaultStyle: false, mode: "vega-lite" });
      figure.view = view;
      canvas.querySelector("svg")?.setAttribute("aria-hidden", "true");
    } catch (error) { errors.push(String(error)); console.error(error); }
  }

  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
  }, { rootMargin: "400px" });

  function drawAll() {
    return Promise.all([...document.querySelectorAll("figure.chart:not([data-drawn])")].map(draw));
  }

  function redraw() {
    for (const figure of document.querySelectorAll("figure.chart[data-drawn]")) draw(figure);
  }

  // ---- tables
  function value(cell) {
    return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent.trim();
  }

  function sort(table, column, heading) {
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : typeof a === "number" ? -1 : typeof b === "number" ? 1 : a.localeCompare(b, "en", { numeric: true }));
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [value(row.cells[column]), row]);
    rows.sort((a, b) => (ascending ? 1 : -1) * order(a[0], b[0]));
    body.append(...rows.map((pair) => pair[1]));
  }

  function sortable(table) {
    if (!table.tHead || table.dataset.ready) return;
    table.dataset.ready = "yes";
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      if (table.tBodies[0].rows[0]?.cells[column]?.classList.contains("n")) heading.classList.add("n");
      button.addEventListener("click", () => sort(table, column, heading));
    });
  }

  // ---- units
  const DECIMAL = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const BINARY = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"]];
  function digits(number) {
    const size = Math.abs(number);
    return size >= 99.95 ? number.toFixed(0) : size >= 9.995 ? number.toFixed(1) : Number.isInteger(number) ? String(number) : number.toFixed(2);
  }
  function units() {
    for (const cell of document.querySelectorAll("td[data-unit]")) {
      const number = Number(cell.dataset.v);
      const text = [...cell.childNodes].find((node) => node.nodeType === 3);
      cell.dataset.written ??= text.data;
      const steps = state.bytes === "binary" ? BINARY : DECIMAL;
      const step = steps.find(([limit]) => Math.abs(number) >= 0.9995 * limit); // not 1024 KiB
      // What was written first is what the program itself says: sizes in powers of 1024, rates of 1000.
      const own = (state.bytes === "binary") === (cell.dataset.unit === "B");
      text.data = own ? cell.dataset.written : step ? `${digits(number / step[0])} ${step[1]}${cell.dataset.unit}` : `${digits(number)} ${cell.dataset.unit}`;
    }
  }

  // ---- what is packed
  const chunks = new Map();
  async function chunk(part, number) {
    const id = `${part}chunk-${number}`;
    if (!chunks.has(id)) chunks.set(id, unpack(document.getElementById(id).textContent).then((text) => JSON.parse(text)));
    return chunks.get(id);
  }

  async function open(details) {
    if (!details.open || details.dataset.filled) return;
    details.dataset.filled = "yes";
    if (details.classList.contains("raw")) {
      const pre = details.querySelector("pre");
      pre.textContent = await unpack(pre.dataset.gz);
      return;
    }
    const sections = await chunk(details.id.match(/^(\d+-)?/)[0], Number(details.dataset.chunk));
    const holder = document.createElement("div");
    holder.innerHTML = sections[Number(details.dataset.place)];
    details.append(holder);
    ready(holder);
  }

  async function more(button) {
    const table = document.getElementById(button.dataset.for);
    const rest = table.querySelector("tbody.packed");
    const rows = document.createElement("template");
    rows.innerHTML = await unpack(rest.dataset.gz);
    table.tBodies[0].append(rows.content);
    rest.remove();
    button.remove();
  }

  function ready(root) {
    root.querySelectorAll("table.sorts").forEach(sortable);
    root.querySelectorAll("figure.chart").forEach((figure) => watch.observe(figure));
    root.querySelectorAll("details.packed").forEach((details) => details.addEventListener("toggle", () => open(details)));
    root.querySelectorAll("button.more").forEach((button) => button.addEventListener("click", () => more(button)));
    if (state.bytes === "binary") units();
  }

  function target() {
    const found = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (found) for (let each = found; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
  }

  document.querySelector("form.switches").addEventListener("change", (event) => {
    state[event.target.name] = event.target.value;
    redraw();
    units();
  });
  addEventListener("hashchange", target);
  addEventListener("beforeprint", () => { drawAll(); });
  ready(document);
  target();

  // ---- a page that is served, of a campaign that is running
  const live = document.getElementById("live");
  if (live?.dataset.events) {
    let known = live.dataset.known;  // what the page was made of
    const listen = () => {
      const source = new EventSource(live.dataset.events);
      source.onmessage = async (event) => {
        const said = JSON.parse(event.data);
        live.textContent = said.text;
        if (said.over) source.close();
        if (said.text === known) return;
        known = said.text;
        await renew();
      };
      // A browser gives up where it is refused: by a server that has too much to do, or because the campaign is gone.
      source.onerror = async () => {
        if (source.readyState !== EventSource.CLOSED) return;
        const answer = await asked();
        if (answer?.status === 404) live.textContent = "the campaign is not in the store any more";
        else setTimeout(listen, 3000);
      };
    };
    let again;  // the timer of the next attempt
    const renew = async () => {
      const answer = await asked();
      if (answer?.status === 404) return;  // the campaign was deleted: the page stays as it is
      const main = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main") : null;
      if (!main) {  // the server or its database is away: the page stays as it is
        clearTimeout(again);
        again = setTimeout(renew, 3000);
        return;
      }
      const opened = [...document.querySelectorAll("details[open]")].map((each) => each.querySelector("summary").textContent);
      document.getElementById("main").replaceWith(main);
      for (const each of document.querySelectorAll("details")) if (opened.includes(each.querySelector("summary").textContent)) each.open = true;
      ready(document.getElementById("main"));
    };
    const asked = () => fetch(location.href).catch(() => null);
    listen();
  }
  window.fslab = { drawAll, errors, state };
})();
