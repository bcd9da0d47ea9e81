(() => {
const ROWS_SHOWN = 15;
const name = show(data.file.split("/").pop()) || "Standard input";
const moment = text => text.replace("T", " ").replace("Z", " UTC");
const second = s => moment(new Date(1000 * s).toISOString().replace(".000", ""));
const length = s => s < 120 ? s + " s" : s < 7200 ? Math.round(s / 60) + " min" : s < 172800 ? Math.round(s / 3600) + " h" : Math.round(s / 86400) + " days";

/* ---- head ---- */

document.title = name + " – commands over time";
$("title").textContent = name;
const lasts = (data.last_ms - data.first_ms) / 1000;
$("sub").textContent = data.timed ? `From ${second(Math.floor(data.first_ms / 1000))} to ${second(Math.floor(data.last_ms / 1000))}` : "The commands of this log have no times";
figure("Commands", count(data.commands), lasts > 0 ? (data.commands / lasts).toFixed(1) + " per second" : "");
figure("Bytes", bytes(data.bytes), lasts > 0 ? bytes(Math.round(data.bytes / lasts)) + " per second" : "");
figure("Keys in commands", count(data.keys), "about " + count(data.different_keys) + " different ones");
figure("Time", data.timed ? length(Math.round(lasts)) : "unknown", data.timed < data.commands ? plural(data.commands - data.timed, "command") + " without a time" : "");

/* ---- spans of time ---- */

const spans = data.spans.map(([i, commands, bytes, ...lines]) => ({i, at: data.start_s + i * data.width_s, commands, bytes, lines}));
const bySpan = new Map(spans.map(span => [span.i, span]));
const n = Math.ceil(data.n_spans / data.column);
const cols = Array.from({length: n}, (_, k) => ({at: data.start_s + k * data.column * data.width_s, commands: 0, bytes: 0}));
for (const span of spans) {
  const col = cols[Math.floor(span.i / data.column)];
  col.commands += span.commands;
  col.bytes += span.bytes;
}
const rows = list => list.map(([name, commands, keys, bytes, series]) => ({name, commands, keys, bytes, series}));
const commands = rows(data.by_command), prefixes = rows(data.by_prefix);
const titleOf = row => row.name === null ? "all others" : show(row.name) || "no prefix";

let what = "commands", only = null, chosen = -1, part = -1;
const valueOf = (col, k) => only ? only.series[k] : col[what];
const textOf = (col, k, width) => `${second(col.at)}, ${length(width)}: ${only ? plural(only.series[k], "command") : plural(col.commands, "command") + ", " + bytes(col.bytes)}`;

/* Arrows move among the columns of a chart, of which one can be reached with Tab. */
const steer = (list, act) => list.addEventListener("keydown", event => {
  const bars = [...list.querySelectorAll("button")], at = bars.indexOf(document.activeElement);
  const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: bars.length - 1}[event.key];
  if (at < 0 || to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const bar = bars[Math.max(0, Math.min(bars.length - 1, to))];
  bars.forEach(b => b.setAttribute("tabindex", b === bar ? "0" : "-1"));
  bar.focus();
  act(bars.indexOf(bar));
});

const drawTime = focus => {
  columns($("time"), cols.map((col, k) => ({label: second(col.at).slice(11, 19), value: valueOf(col, k), on: k === chosen, stop: k === Math.max(0, chosen),
    text: textOf(col, k, data.column * data.width_s), act: () => choose(k)})));
  if (focus) $("time").querySelectorAll("button")[chosen].focus();
  $("about").textContent = chosen < 0 ? `Each column is ${length(data.column * data.width_s)}. Choose one to see its commands.` : textOf(cols[chosen], chosen, data.column * data.width_s);
};

const drawPart = focus => {
  const first = chosen * data.column, list = [];
  for (let i = first; i < Math.min(data.n_spans, first + data.column); i++)
    list.push(bySpan.get(i) || {i, at: data.start_s + i * data.width_s, commands: 0, bytes: 0, lines: []});
  if (part < 0) part = list.reduce((best, span, k) => span.commands > list[best].commands ? k : best, 0);
  const span = list[part], text = s => `${second(s.at)}, ${length(data.width_s)}: ${plural(s.commands, "command")}, ${bytes(s.bytes)}`;
  columns($("seconds"), list.map((s, k) => ({label: second(s.at).slice(11, 19), value: s[what], on: k === part, stop: k === part, text: text(s), act: () => { part = k; drawPart(true); }})));
  if (focus) $("seconds").querySelectorAll("button")[part].focus();
  $("seconds").hidden = list.length < 2;
  $("second-about").textContent = text(span);
  $("lines").replaceChildren(...span.lines.map(line => make("li", {}, show(line))));
  $("chosen-count").textContent = span.lines.length < span.commands ? `the first ${span.lines.length} of ${plural(span.commands, "command")}` : plural(span.commands, "command");
  $("chosen-section").hidden = false;
};

const choose = (k, focus = true) => {
  chosen = k;
  part = -1;
  drawTime(focus);
  drawPart(false);
};

if (data.timed) {
  steer($("time"), k => { $("about").textContent = textOf(cols[k], k, data.column * data.width_s); });
  steer($("seconds"), () => {});
  const kinds = {commands: "Commands", bytes: "Bytes"};
  const buttons = Object.entries(kinds).map(([value, title]) => make("button", {type: "button", "data-value": value, "aria-pressed": String(value === what)}, title));
  buttons.forEach(button => button.addEventListener("click", () => {
    what = button.dataset.value;
    only = null;
    $("only").value = "";
    buttons.forEach(b => b.setAttribute("aria-pressed", String(b === button)));
    drawTime();
    if (chosen >= 0) drawPart(false);
  }));
  $("what").append(...buttons);
  const options = (label, list, prefix) => make("optgroup", {label}, ...list.map((row, i) => row.series ? make("option", {value: prefix + i}, titleOf(row)) : null));
  $("only").append(make("option", {value: ""}, "All commands"), options("Commands", commands, "c"), options("Prefixes", prefixes, "p"));
  $("only").addEventListener("change", () => {
    const value = $("only").value;
    only = value ? (value[0] === "c" ? commands : prefixes)[Number(value.slice(1))] : null;
    what = "commands";
    buttons.forEach(b => b.setAttribute("aria-pressed", String(b.dataset.value === what)));
    drawTime();
  });
  drawTime();
} else {
  $("time-section").hidden = true;
}

/* ---- gaps and bursts ---- */

const spots = [];
const average = data.timed / Math.max(1, spans.length);
for (const span of [...spans].sort((a, b) => b.commands - a.commands).slice(0, 5))
  if (span.commands >= 3 * average && span.commands >= 10)
    spots.push({at: span.i, text: `${plural(span.commands, "command")} in ${length(data.width_s)} from ${second(span.at)}: ${(span.commands / average).toFixed(0)} times the average, ${bytes(span.bytes)}.`});
const gaps = [];
for (let k = 1; k < spans.length; k++) {
  const empty = spans[k].i - spans[k - 1].i - 1;
  if (empty >= 5 && empty * 20 >= data.n_spans / spans.length) gaps.push({empty, from: spans[k - 1]});
}
for (const gap of gaps.sort((a, b) => b.empty - a.empty).slice(0, 5))
  spots.push({at: gap.from.i, text: `No command for ${length(gap.empty * data.width_s)} from ${second(gap.from.at + data.width_s)}.`});
$("slow").append(...spots.map(spot => {
  const button = make("button", {type: "button", class: "more"}, "Show");
  button.addEventListener("click", () => { choose(Math.floor(spot.at / data.column)); part = spot.at % data.column; drawPart(false); });
  return make("li", {}, make("p", {class: "finding"}, spot.text), button);
}));
$("slow-none").hidden = spots.length > 0;
$("slow-section").hidden = !data.timed;

/* ---- tables ---- */

const table = (id, title, head, list) => {
  const view = grid({table: $(id), by: 3, limit: ROWS_SHOWN, more: $(id + "-more"), cols: [
    {title, head, left: true, wide: true, order: row => titleOf(row), csv: row => row.name === null ? "" : row.name, cell: row => titleOf(row)},
    {title: "Commands", head: "commands", order: row => row.commands, csv: row => row.commands, cell: row => count(row.commands), unit: () => "commands"},
    {title: "Keys", head: "keys", order: row => row.keys, csv: row => row.keys, cell: row => count(row.keys), unit: () => "keys"},
    {title: "Bytes", head: "bytes", order: row => row.bytes, csv: row => row.bytes, cell: row => bytes(row.bytes)},
    {title: "Share", head: "share", order: row => row.bytes, csv: row => data.bytes ? row.bytes / data.bytes : 0, cell: row => percent(row.bytes, data.bytes), unit: () => "of all bytes"},
  ]});
  view.fill(list);
  $(id + "-csv").addEventListener("click", () => view.save(name.replace(/[^A-Za-z0-9._-]+/g, "_") + "-" + id + ".csv"));
};
table("commands", "Command", "command", commands);
table("prefixes", "Prefix", "prefix", prefixes);

const notes = [];
if (data.width_s > 1) notes.push(`The time is longer than the page can show in seconds: its smallest part is ${length(data.width_s)}.`);
if (data.timed) notes.push(`At most the first ${data.samples} commands of each part are on the page, fewer where it has no room, and long ones are cut. The command redoubt show prints all of them.`);
if ([...commands, ...prefixes].some(row => row.name === null)) notes.push("Names that have no room on the page are in “all others”.");
notes.push(`Made at ${moment(data.made_at)} by redoubt ${data.made_by} (redoubt show) from ${show(data.file)}.`);
$("foot").append(...notes.map(note => make("p", {}, note)));
})();
