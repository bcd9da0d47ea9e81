(() => {
const ROWS_SHOWN = 25, POINTS_MAX = 1500;
const DAY = 86400000;

/* ---- what the sets and streams are ---- */

const STATES = {ok: "good", pinned: "good, pinned", damaged: "damaged"};
const full = ms => new Date(ms).toISOString().slice(0, 19).replace("T", " ");
const seconds = ms => {
  const parts = [[DAY, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];
  const i = parts.findIndex(([size]) => ms >= size);
  if (i < 0) return "0 s";
  const [size, unit] = parts[i], rest = parts[i + 1];
  const more = rest ? Math.floor(ms % size / rest[0]) : 0;
  return count(Math.floor(ms / size)) + " " + unit + (more ? " " + more + " " + rest[1] : "");
};

const sets = data.sets.map(set => ({...set, at: Date.parse(set.time)}));
const streams = data.streams.filter(stream => stream.begin_time).map(stream => ({...stream, begin: Date.parse(stream.begin_time), end: Date.parse(stream.end_time),
  from: Date.parse(stream.from_time), to: Date.parse(stream.to_time), first: stream.start, last: stream.end}));
const placeOf = item => item.target + "\n" + item.repository;
const places = [...new Set([...sets, ...streams].map(placeOf))].sort();
const targets = [...new Set(sets.map(set => set.target))];

/* What is known about a set. A set is verified while it is made; `redoubt verify` marks damage. */
const verified = set => set.error ? "the manifest is damaged: " + show(set.error.text || set.error.code)
  : set.missing_files ? plural(set.missing_files, "file") + " missing or of another size"
  : set.state === "damaged" ? "found damaged by redoubt verify" : "verified when it was made";
const contents = set => set.error ? "not known" : set.nodes ? plural(set.nodes.length, "master") + ", " + plural(set.keys, "key")
  : set.keys === undefined ? "log" : plural(set.keys, "key");
const sealed = set => set.error ? "not known" : set.key_id ? "sealed" : "not sealed";

/* Gaps between the streams of a place; the data between them cannot be restored. */
const gapsOf = place => {
  const list = streams.filter(stream => placeOf(stream) === place).sort((a, b) => a.begin - b.begin);
  return list.slice(1).map((stream, i) => ({gap: true, target: stream.target, repository: stream.repository,
    begin: list[i].end, end: stream.begin})).filter(gap => gap.end >= gap.begin);
};
const gaps = places.flatMap(gapsOf);

/* ---- head ---- */

const unread = data.errors.length > 0;
const good = sets.filter(set => set.good);
const newest = Math.max(...good.map(set => set.at));
const stored = [...sets, ...streams].reduce((sum, item) => sum + item.stored_bytes, 0);
const damaged = sets.filter(set => set.state === "damaged");
document.title = "Backups" + (targets.length === 1 ? " of " + show(targets[0]) : "");
$("title").textContent = document.title;
$("sub").textContent = "As of " + full(data.now_ms) + " UTC, in " + [...new Set(places.map(place => show(place.split("\n")[1])))].join(", ");
figure("Good sets", count(good.length), damaged.length ? plural(damaged.length, "damaged set") : "none is damaged");
figure("Newest good set", good.length ? seconds(Math.max(0, data.now_ms - newest)) : "none", good.length ? "old, of " + full(newest) : unread ? "in what could be read" : "nothing can be restored");
figure("Stored", bytes(stored), plural(sets.length, "set") + ", " + plural(streams.reduce((sum, s) => sum + s.segments, 0), "segment"));
figure("Gaps", count(gaps.length), streams.length ? "in the archived stream" : unread ? "no stream could be read" : "no stream is archived");

/* ---- repositories that could not be read ---- */

const reason = ({target, error}) => [target, error.origin, error.text || error.code, ...error.doing || []].filter(Boolean).map(show).join(": ");
$("unread").append(...data.errors.map(error => make("li", {}, reason(error))));
$("unread-section").hidden = !unread;

/* ---- the time line ---- */

const now = Math.max(data.now_ms, ...sets.map(set => set.at), ...streams.map(stream => stream.end));
const oldest = Math.min(now - 3600000, ...sets.map(set => set.at), ...streams.map(stream => stream.begin));
const most = Math.max(1, ...sets.map(set => set.stored_bytes));
let chosen = null;

const describe = set => `${full(set.at)} UTC, ${STATES[set.state]}: ${verified(set)}; ${contents(set)}, ${bytes(set.stored_bytes)} stored, ${sealed(set)}`;

/* All of a lane that is in the span; where there are too many, evenly chosen ones and all that need attention. */
const pointsOf = (place, from) => {
  const list = sets.filter(set => placeOf(set) === place && set.at >= from).sort((a, b) => a.at - b.at);
  const step = Math.ceil(list.length / POINTS_MAX);
  return {all: list.length, drawn: list.filter((set, i) => i % step === 0 || set.state !== "ok" || i === list.length - 1)};
};

const drawPoints = (lane, list, share) => {
  const points = list.map((set, i) => {
    const bar = make("span", {});
    bar.style.height = 8 + 84 * set.stored_bytes / most + "%";
    const el = make("button", {type: "button", class: "point " + set.state, tabindex: i === list.length - 1 ? "0" : "-1",
      "data-id": set.id, "aria-label": describe(set), "aria-pressed": "false"}, bar);
    el.style.left = 100 * share(set.at) + "%";
    el.addEventListener("click", () => choose(set));
    el.addEventListener("focus", () => {
      points.forEach(other => other.setAttribute("tabindex", other === el ? "0" : "-1"));
      $("about").textContent = describe(set);
    });
    el.addEventListener("mouseenter", () => { $("about").textContent = describe(set); });
    return el;
  });
  lane.addEventListener("keydown", event => {
    const at = points.indexOf(document.activeElement);
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: points.length - 1}[event.key];
    if (to === undefined || at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (points[to]) points[to].focus({preventScroll: true});
  });
  lane.append(...points);
};

const drawSpan = (lane, kind, from, to, share, text) => {
  if (!(to >= from) || share(to) <= 0) return;
  const el = make("span", {class: kind, title: text});
  el.style.left = 100 * Math.max(0, share(from)) + "%";
  el.style.width = 100 * (share(to) - Math.max(0, share(from))) + "%";
  lane.append(el);
};

const drawTicks = (from, to) => {
  const short = to - from < 3 * DAY;
  return make("div", {class: "ticks", "aria-hidden": "true"}, ...[0, 0.25, 0.5, 0.75, 1].map(at => {
    const el = make("span", {}, short ? full(from + at * (to - from)).slice(5, 16) : full(from + at * (to - from)).slice(0, 10));
    el.style.left = 100 * at + "%";
    return el;
  }));
};

const drawLane = (place, from) => {
  const [target, repository] = place.split("\n"), to = now, share = ms => (ms - from) / Math.max(1, to - from) * 0.98 + 0.01;
  const {all, drawn} = pointsOf(place, from), line = make("div", {class: "points", role: "group", "aria-label": "Sets of " + show(target) + ", the height is their size"});
  drawPoints(line, drawn, share);
  const spans = make("div", {class: "spans"});
  for (const stream of streams.filter(s => placeOf(s) === place)) {
    drawSpan(spans, "baseless", stream.begin, stream.end, share, "archived, but no set is its base");
    for (const {from_time, to_time} of stream.moments) {
      const [from, to] = [Date.parse(from_time), Date.parse(to_time)];
      drawSpan(spans, "covered", from, to, share, `any moment from ${full(from)} to ${full(to)}`);
    }
  }
  for (const gap of gapsOf(place))
    drawSpan(spans, "gap", gap.begin, gap.end, share, `gap from ${full(gap.begin)} to ${full(gap.end)}`);
  const note = plural(all, "set") + (drawn.length < all ? ", " + count(drawn.length) + " drawn" : "");
  return make("div", {class: "lane"}, make("h3", {}, show(target), make("small", {}, show(repository) + " · " + note)), line, spans, drawTicks(from, to));
};

const draw = () => {
  const from = Number($("span").value) ? Math.max(oldest, now - Number($("span").value)) : oldest;
  $("lanes").replaceChildren(...places.map(place => drawLane(place, from)));
  if (!places.length && !unread) $("lanes").append(make("p", {class: "empty"}, "There is no set."));
};

$("span").append(...[["All", 0], ["1 year", 365 * DAY], ["30 days", 30 * DAY], ["7 days", 7 * DAY], ["24 hours", DAY]]
  .filter(([, span]) => span === 0 || now - oldest > span).map(([text, span]) => make("option", {value: span}, text)));
$("span").addEventListener("change", draw);
const legend = [["good", "var(--ok)"], ["pinned", "var(--pinned)"], ["damaged", "var(--damaged)"], ["any moment", "var(--covered)"], ["no base", "var(--rest)"]];
$("legend").append(...legend.map(([text, colour]) => {
  const dot = make("span", {class: "dot"});
  dot.style.backgroundColor = colour;
  return make("li", {}, dot, text);
}), make("li", {}, make("span", {class: "dot gap"}), "gap"));

/* ---- the streams ---- */

const title = (table, names) => table.tHead.rows[0].append(...names.map(name => make("th", {scope: "col"}, name)));
title($("streams"), ["Range (UTC)", "Target", "Length", "Offsets", "Segments", "Stored", "Seal"]);
const cell = (text, unit, kind) => make("td", {class: kind, "data-unit": unit}, text);
for (const item of [...streams, ...gaps].sort((a, b) => b.begin - a.begin)) {
  if (item.gap) {
    $("streams").tBodies[0].append(make("tr", {class: "gap-row"}, cell(`${full(item.begin)} to ${full(item.end)}`, undefined, "key"),
      cell(show(item.target)), cell(seconds(item.end - item.begin)), cell("gap"), cell(""), cell(""), cell("")));
    continue;
  }
  const known = item.bases > 0, from = known ? item.from : item.begin, to = known ? item.to : item.end;
  $("streams").tBodies[0].append(make("tr", {},
    cell(`${full(from)} to ${full(to)}` + (known ? "" : ", no base"), undefined, "key"), cell(show(item.target)), cell(seconds(to - from)),
    cell(known ? `${item.from_offset} to ${item.to_offset}` : `${item.first} to ${item.last}`, "offsets"),
    cell(count(item.segments), "segments"), cell(bytes(item.stored_bytes), "stored"), cell(item.sealed ? "sealed" : "not sealed")));
}
$("streams").hidden = streams.length === 0;
$("no-streams").hidden = streams.length > 0 || unread;

/* ---- the sets ---- */

const table = (() => {
  const columns = [
    {title: "Time (UTC)", text: set => full(set.at), order: set => set.at, kind: "key"},
    {title: "Target", text: set => show(set.target), order: set => set.target},
    {title: "State", text: set => STATES[set.state], order: set => set.state, kind: set => set.state === "damaged" ? "bad" : undefined},
    {title: "Verification", text: verified, order: verified, kind: "left"},
    {title: "Contents", text: contents, order: set => set.keys || 0},
    {title: "Size", text: set => set.bytes === undefined ? "" : bytes(set.bytes), order: set => set.bytes || 0, unit: "plain"},
    {title: "Stored", text: set => bytes(set.stored_bytes), order: set => set.stored_bytes, unit: "stored"},
    {title: "Seal", text: sealed, order: sealed},
    {title: "Server", text: set => show(set.server || "") + (set.one_moment === false ? ", not one moment" : ""), order: set => set.server || ""},
  ];
  let by = 0, down = true, all = false;
  const head = $("sets").tHead.rows[0], body = $("sets").tBodies[0], search = $("search"), state = $("state");
  columns.forEach((column, i) => {
    const button = make("button", {type: "button"}, column.title);
    button.addEventListener("click", () => {
      down = by === i ? !down : i === 0 || (i >= 4 && i <= 6);
      by = i;
      api.draw();
    });
    head.append(make("th", {scope: "col", class: column.kind === "left" ? "left" : undefined}, button));
  });
  state.append(make("option", {value: ""}, "All states"), ...Object.entries(STATES).map(([value, text]) => make("option", {value}, text)));
  const matches = (set, want) => [set.id, set.source, set.server, set.target].some(text => show(text || "").toLowerCase().includes(want));
  const api = {draw() {
    const want = search.value.toLowerCase(), order = columns[by].order;
    const found = sets.filter(set => (!state.value || set.state === state.value) && matches(set, want));
    found.sort((a, b) => {
      const x = order(a), y = order(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    const shown = all ? found : found.slice(0, ROWS_SHOWN);
    if (chosen && found.includes(chosen) && !shown.includes(chosen)) shown.push(chosen);
    body.replaceChildren(...shown.map(set => make("tr", {"data-id": set.id, tabindex: "-1", "aria-current": set === chosen ? "true" : undefined},
      ...columns.map(column => make("td", {class: typeof column.kind === "function" ? column.kind(set) : column.kind, "data-unit": column.unit}, column.text(set))))));
    [...head.cells].forEach((cell, i) => i === by ? cell.setAttribute("aria-sort", down ? "descending" : "ascending") : cell.removeAttribute("aria-sort"));
    $("sets-count").textContent = plural(found.length, "set");
    $("none").hidden = found.length > 0;
    $("sets").hidden = found.length === 0;
    $("more").hidden = found.length <= shown.length;
    $("more").textContent = "Show all " + count(found.length);
  }};
  search.addEventListener("input", api.draw);
  state.addEventListener("change", api.draw);
  $("more").addEventListener("click", () => { all = true; api.draw(); });
  return api;
})();

/* Shows a set of the time line in the table. */
const choose = set => {
  chosen = set;
  document.querySelectorAll(".point").forEach(el => el.setAttribute("aria-pressed", String(el.dataset.id === set.id)));
  $("search").value = "";
  $("state").value = "";
  table.draw();
  const row = [...$("sets").tBodies[0].rows].find(tr => tr.dataset.id === set.id);
  row.scrollIntoView({block: "nearest"});
  row.focus({preventScroll: true});
};

$("foot").append(...["Times are those of the host that makes the backups. A set is verified while it is made; redoubt verify reads it again and marks damage.",
  "Generated by redoubt list."].map(note => make("p", {}, note)));
draw();
table.draw();
})();
