(() => {
const ROWS_SHOWN = 20;
const short = path => show(path.includes("://") ? path : path.split("/").pop()) || "standard input";
const names = [short(data.a), short(data.b)];
const moment = ms => ms === null ? "none" : time(ms) + " UTC";
const quoted = text => "“" + show(text) + "”";
const total = data.only[0] + data.only[1] + data.different;

/* ---- head ---- */

document.title = `${names[0]} and ${names[1]} – differences`;
$("title").textContent = total || data.functions_differ ? plural(total, "different key") : "The same data";
$("sub").textContent = `A is ${show(data.a)}, B is ${show(data.b)}`;
const reasons = [["type", data.different_type], ["expiry", data.different_expiry], ["value", data.different_value]];
figure("Keys in A", count(data.keys[0]), names[0]);
figure("Keys in B", count(data.keys[1]), names[1]);
figure("Only on one side", count(data.only[0] + data.only[1]), `${count(data.only[0])} only in A, ${count(data.only[1])} only in B`);
figure("In both, but different", count(data.different), reasons.filter(([, n]) => n > 0).map(([word, n]) => `${word} ${count(n)}`).join(", "));

const notes = [];
if (data.functions_differ) notes.push(`The function libraries differ: A has ${count(data.functions[0])}, B has ${count(data.functions[1])}.`);
if (data.due) notes.push(`${plural(data.due, "key")} on one side only expired in the meantime and ${data.due === 1 ? "is" : "are"} not compared.`);
["A", "B"].forEach((side, i) => {
  if (data.gone && data.gone[i]) notes.push(`${plural(data.gone[i], "key")} of ${side} disappeared while the server was read.`);
  if (data.changing && data.changing[i]) notes.push(`${plural(data.changing[i], "key")} of ${side} kept changing while the server was read.`);
  if (data.not_compared && data.not_compared[i]) notes.push(`${plural(data.not_compared[i], "key")} of ${side} could not be read and ${data.not_compared[i] === 1 ? "was" : "were"} not compared.`);
});
$("notes").replaceChildren(...notes.map(note => make("li", {}, make("p", {class: "finding"}, note))));
$("notes-section").hidden = notes.length === 0;
$("same").hidden = total > 0 || notes.length > 0;
$("prefixes-section").hidden = $("keys-section").hidden = total === 0;

/* ---- prefixes ---- */

/* Keys come by database: a prefix may be in several. */
const byPrefix = new Map();
for (const [name, a, b, both] of data.by_prefix) {
  const row = byPrefix.get(name) || {name, only: [0, 0], different: 0};
  row.only[0] += a;
  row.only[1] += b;
  row.different += both;
  byPrefix.set(name, row);
}
const titleOf = row => row.name === null ? "all others" : show(row.name) || "no prefix";
const sum = row => row.only[0] + row.only[1] + row.different;
const file = id => `${names[0]}-${names[1]}-${id}`.replace(/[^A-Za-z0-9._-]+/g, "_") + ".csv";
const prefixes = grid({table: $("prefixes"), by: 4, limit: ROWS_SHOWN, more: $("prefixes-more"), cols: [
  {title: "Prefix", head: "prefix", left: true, wide: true, order: titleOf, csv: row => row.name === null ? "" : row.name, cell: titleOf},
  {title: "Only in A", head: "only_a", order: row => row.only[0], csv: row => row.only[0], cell: row => count(row.only[0]), unit: () => "only in A"},
  {title: "Only in B", head: "only_b", order: row => row.only[1], csv: row => row.only[1], cell: row => count(row.only[1]), unit: () => "only in B"},
  {title: "Different", head: "different", order: row => row.different, csv: row => row.different, cell: row => count(row.different), unit: () => "different"},
  {title: "Sum", head: "sum", order: sum, csv: sum, cell: row => count(sum(row)), unit: () => "in all"},
]});
prefixes.fill([...byPrefix.values()]);
$("prefixes-csv").addEventListener("click", () => prefixes.save(file("prefixes")));

/* ---- keys ---- */

const kinds = {a: "Only in A", b: "Only in B", both: "Different"};
const typeOf = row => row.type[0] && row.type[1] && row.type[0] !== row.type[1] ? `${row.type[0]} and ${row.type[1]}` : row.type[0] || row.type[1];

const valueText = value => {
  if (value === undefined) return "value";
  if (value.bytes) return `value: ${bytes(value.bytes[0])} and ${bytes(value.bytes[1])}, different from byte ${count(value.first_byte)}`;
  return `value: ${count(value.parts[0])} and ${count(value.parts[1])} parts, ${count(value.differ)} different, ${count(value.only[0])} only in A, ${count(value.only[1])} only in B`;
};
const whatText = row => row.in !== "both" ? kinds[row.in] : row.differs.map(word =>
  word === "type" ? `type: ${row.type[0]} and ${row.type[1]}` :
  word === "expiry" ? `expiry: ${moment(row.expire_ms[0])} and ${moment(row.expire_ms[1])}` : valueText(row.value)).join("; ");

const sideText = side => quoted(side.text) + (side.cut ? "…" : "") + (side.expire_ms === undefined ? "" : `, expires ${moment(side.expire_ms)}`);
const partText = part => {
  const name = part.index !== undefined ? " " + count(part.index) : part.name !== undefined ? " " + quoted(part.name) + (part.name_cut ? "…" : "") : "";
  const where = part.in === "both" ? "" : part.in === "a" ? " only in A" : " only in B";
  return part.part + name + where + ": " + [part.a, part.b].filter(side => side !== undefined).map(sideText).join(" and ");
};
const partsOf = value => {
  if (value === undefined) return [];
  if (value.a) return [["A", value.a], ["B", value.b]].map(([side, text]) => `${side}: ${text.from ? `from byte ${count(text.from)} ` : ""}${sideText(text)}`);
  const lines = (value.first || []).map(partText), more = value.differ + value.only[0] + value.only[1] - lines.length;
  return lines.length > 0 && more > 0 ? [...lines, `and ${count(more)} more`] : lines;
};
const whatCell = row => {
  const lines = partsOf(row.value);
  return make("div", {class: "what"}, make("p", {}, whatText(row)),
    lines.length ? make("ul", {class: "parts mono"}, ...lines.map(line => make("li", {}, line))) : null);
};

const keys = grid({table: $("keys"), by: 0, limit: ROWS_SHOWN, more: $("keys-more"), cols: [
  {title: "Key", head: "key", left: true, wide: true, order: row => row.key, csv: row => row.key, cell: row => show(row.key)},
  {title: "Database", head: "db", order: row => row.db, csv: row => row.db, cell: row => String(row.db), unit: () => "database"},
  {title: "Type", head: "type", left: true, order: typeOf, csv: typeOf, cell: typeOf},
  {title: "Difference", head: "difference", left: true, order: whatText, csv: whatText, cell: whatCell},
]});
$("keys-csv").addEventListener("click", () => keys.save(file("keys")));

let kind = "all";
const draw = () => {
  const part = $("find").value;
  const rows = data.differences.filter(row => (kind === "all" || row.in === kind) && (part === "" || row.key.includes(part)));
  const hidden = kind === "all" ? total : kind === "both" ? data.different : data.only[kind === "a" ? 0 : 1];
  const kept = data.differences.filter(row => kind === "all" || row.in === kind).length;
  keys.fill(rows);
  $("keys-about").textContent = plural(rows.length, "key") + (kept < hidden ? `. The page has room for ${count(kept)} of ${count(hidden)} keys.` : "");
  for (const button of $("kinds").children) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
};
for (const [name, label] of [["all", "All"], ...Object.entries(kinds)]) {
  const button = make("button", {type: "button", "data-kind": name}, label);
  button.addEventListener("click", () => { kind = name; draw(); });
  $("kinds").append(button);
}
$("find").addEventListener("input", draw);
draw();

const foot = [];
if (data.differences.length < total) foot.push("The page has the first keys of each kind. redoubt diff without --html lists all of them.");
foot.push(`Made at ${data.made_at.replace("T", " ").replace("Z", " UTC")} by redoubt ${data.made_by} (redoubt diff).`);
$("foot").append(...foot.map(note => make("p", {}, note)));
})();
