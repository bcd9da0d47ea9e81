(() => {
const KEYS_SHOWN = 25, GROUPS_SHOWN = 15, CHANGES_SHOWN = 25;

const colour = kind => `var(--${/^[a-z]+$/.test(kind) ? kind : "rest"})`;
const total = data.total, old = data.old;
const moment = text => text.replace("T", " ").replace("Z", " UTC");
const fileName = snapshot => show(snapshot.file.split("/").pop()) || "Snapshot";
const server = snapshot => snapshot.server === "valkey" ? "Valkey" : "Redis";
const origin = snapshot => snapshot.format +
  (snapshot.written_by ? `, written by ${server(snapshot)} ${snapshot.written_by}` : "") +
  (snapshot.written_at ? (snapshot.written_by ? " at " : ", written at ") + moment(snapshot.written_at) : "");
const change = (was, is, format) => was === is ? "no change" : (is > was ? "+" : "−") + format(Math.abs(is - was)) +
  (was ? ` (${is > was ? "+" : "−"}${percent(Math.abs(is - was), was)})` : "");

/* ---- head ---- */

const name = fileName(data);
document.title = name + (old ? " – changes" : " – snapshot report");
$("title").textContent = name;
$("sub").textContent = origin(data);
if (old) {
  $("sub-old").textContent = `Compared with ${fileName(old)}: ${origin(old)}`;
  $("sub-old").hidden = false;
}
const lasting = data.expiry[data.expiry.length - 1];
figure("Keys", count(total.keys), old ? change(old.total.keys, total.keys, count) : plural(data.databases.length, "database"));
figure("Memory of the keys", bytes(total.memory), old ? change(old.total.memory, total.memory, bytes) : "estimated for " + data.memory_of);
figure("Never expires", percent(lasting.memory, total.memory), `${bytes(lasting.memory)} in ${plural(lasting.keys, "key")}`);
figure("Size of the file", bytes(data.bytes), data.used_memory ? bytes(data.used_memory) + " used by the server then" : "uncompressed");

/* ---- findings ---- */

$("findings-section").hidden = data.findings.length === 0;
$("findings").append(...data.findings.map(f =>
  make("li", {}, make("p", {class: "finding"}, f.text[0].toUpperCase() + f.text.slice(1)), make("p", {class: "soft"}, f.advice))));

/* ---- keys, and the trees of prefixes and of patterns ---- */

const kinds = data.kind_names;
const keys = [...data.top_keys, ...data.more_keys].map(([db, key, length, type, memory, elements, longest, expires]) =>
  ({db, key, length, kind: kinds[data.type_names[type][0]], encoding: data.type_names[type][1], memory, elements, longest, expires}));
const triples = list => {
  const out = [];
  for (let i = 0; i < list.length; i += 3) out.push({at: list[i], keys: list[i + 1], memory: list[i + 2]});
  return out;
};
/* What is known of the keys of a group; a group without keys in the new snapshot has none. */
const detail = (shares, expiry, sizes, list) =>
  ({kinds: triples(shares || []), expiry: triples(expiry || []), sizes: sizes || [0], keys: (list || []).map(i => keys[i])});

const several = data.databases.length > 1;
const group = (name, full, keys, memory, wasKeys, wasMemory, parent, more) =>
  ({name, full, keys, memory, wasKeys, wasMemory, parent, children: [], ...more});
const before = old ? old.total : {keys: 0, memory: 0};
const whole = detail(...(data.patterns.length ? data.patterns[0].slice(7) : []));
whole.keys = keys.slice(0, data.top_keys.length);

const prefixRoot = group("All keys", "", total.keys, total.memory, before.keys, before.memory, null, {detail: whole});
const bases = new Map();
for (const d of data.databases) {
  const details = data.db_details.find(row => row[0] === d.db);
  const was = old ? old.databases.find(o => o.db === d.db) || {keys: 0, memory: 0} : {keys: 0, memory: 0};
  bases.set(d.db, several ? group("db " + d.db, "", d.keys, d.memory, was.keys, was.memory, prefixRoot,
    {db: d.db, detail: detail(...(details ? details.slice(1) : []))}) : prefixRoot);
}
if (several) prefixRoot.children.push(...bases.values());

const byPrefix = new Map();
const rowsOfPrefixes = data.prefixes.map(([db, prefix, keys, memory, wasKeys, wasMemory, missed, ...rest]) =>
  group(prefix, prefix, keys, memory, wasKeys, wasMemory, null, {db, missed, detail: detail(...rest)}));
for (const node of [...rowsOfPrefixes].sort((a, b) => a.full.length - b.full.length)) {
  const base = bases.get(node.db) || prefixRoot;
  let parent = base;
  for (let at = node.full.length - data.separator.length; parent === base && at > 0;) {
    at = node.full.lastIndexOf(data.separator, at - 1);
    parent = at >= 0 && byPrefix.get(node.db + " " + node.full.slice(0, at + data.separator.length)) || base;
    if (at < 0) break;
  }
  node.parent = parent;
  node.name = node.full.slice(parent.full.length) || node.full;
  byPrefix.set(node.db + " " + node.full, node);
  parent.children.push(node);
}

const patternNodes = data.patterns.map(([parent, part, keys, memory, wasKeys, wasMemory, leaf, ...rest], i) =>
  group(i ? part : "All keys", part, keys, memory, wasKeys, wasMemory, parent, {leaf: Boolean(leaf), detail: i ? detail(...rest) : whole}));
patternNodes.forEach((node, i) => {
  node.parent = i ? patternNodes[node.parent] : null;
  node.full = i ? node.parent.full + node.name : "";
  if (i) node.parent.children.push(node);
});
const patternRoot = patternNodes[0] || prefixRoot;

const MODES = {
  prefix: {title: "Prefixes", root: prefixRoot, rows: rowsOfPrefixes, head: "prefix"},
  pattern: {title: "Patterns", root: patternRoot, rows: patternNodes.slice(1), head: "pattern"},
};
let mode = "prefix", here = prefixRoot, tiles = [];

const byMemory = (a, b) => b.memory - a.memory;
const mainKind = node => {
  const best = node.detail.kinds.reduce((a, b) => b.memory > a.memory ? b : a, {memory: 0, at: -1});
  return kinds[best.at] || "rest";
};
const dbOf = row => several ? make("span", {class: "soft"}, "db" + row.db + " ") : "";

/* The keys of a group that are in none of the parts: one part for each type, or one for all of them
   if the types of the parts are not all known. */
const others = (node, shown) => {
  const left = field => node[field] - shown.reduce((sum, part) => sum + part[field], 0);
  const memory = left("memory"), all = left("keys"), of = new Map(node.detail.kinds.map(k => [kinds[k.at], {...k}]));
  if (memory <= 0 || all <= 0) return [];
  const take = (kind, keys, bytes) => {
    const rest = of.get(kind);
    if (rest) { rest.keys -= keys; rest.memory -= bytes; }
  };
  for (const part of shown)
    if (part.key) take(part.kind, 1, part.memory);
    else for (const k of part.node.detail.kinds) take(kinds[k.at], k.keys, k.memory);
  const rests = [...of].filter(([, rest]) => rest.memory > 0 || rest.keys > 0);
  if (rests.length && rests.every(([, rest]) => rest.memory > 0 && rest.keys > 0) &&
      rests.reduce((sum, [, rest]) => sum + rest.memory, 0) === memory && rests.reduce((sum, [, rest]) => sum + rest.keys, 0) === all)
    return rests.map(([kind, rest]) => ({...rest, kind, rest: true,
      label: plural(rest.keys, shown.length ? `other ${kind} key` : `${kind} key`)}));
  return [{label: shown.length ? plural(all, "other key") : plural(all, "key"), memory, keys: all, kind: "rest", rest: true}];
};

/* The parts of a group that are drawn: its groups, or else its biggest keys, and the rest. */
const parts = node => {
  let list = node.children.map(child => ({node: child, label: child.name, memory: child.memory, keys: child.keys, kind: mainKind(child)}));
  if (!list.length)
    list = node.detail.keys.slice(0, 60).map(key => ({memory: key.memory, keys: 1, kind: key.kind, key,
      label: mode === "prefix" && key.key.length > node.full.length ? key.key.slice(node.full.length) : key.key}));
  const shown = list.sort(byMemory).slice(0, 120);
  return [...shown, ...others(node, shown)].filter(part => part.memory > 0).sort(byMemory);
};

/* Lays out rows of tiles, as square as possible, along the shorter side of the remaining area. */
const squarify = (list, width, height) => {
  const out = [], scale = width * height / list.reduce((sum, part) => sum + part.memory, 0);
  const areas = list.map(part => part.memory * scale);
  let x = 0, y = 0, w = width, h = height, i = 0;
  const worst = (from, to, sum, side) =>
    Math.max(side * side * areas[from] / (sum * sum), sum * sum / (side * side * areas[to]));
  while (i < list.length) {
    const side = Math.min(w, h), from = i;
    let sum = areas[i++];
    while (i < list.length && worst(from, i, sum + areas[i], side) <= worst(from, i - 1, sum, side)) sum += areas[i++];
    const thick = side > 0 ? sum / side : 0;
    let along = 0;
    for (let k = from; k < i; k++) {
      const len = thick > 0 ? areas[k] / thick : 0;
      out.push(w >= h ? {x, y: y + along, w: thick, h: len} : {x: x + along, y, w: len, h: thick});
      along += len;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
  }
  return out;
};

/* ---- the map ---- */

const map = $("map");

const about = part => {
  const more = part.node && part.node.missed ? `, at most ${bytes(part.node.missed)} more` : "";
  $("about").textContent = part.key ? `${show(part.key.key)} – ${bytes(part.memory)}, ${part.kind}, ${plural(part.key.elements, "element")}`
    : `${show(part.node ? part.node.full || part.node.name : part.label)} – ${bytes(part.memory)}, ${percent(part.memory, total.memory)} of all` +
      (part.rest ? "" : ", " + plural(part.keys, "key")) + more;
};

/* The contents of a tile: how much fits into it, its text and its colour. */
const fits = box => box.w < 34 || box.h < 18 ? " tiny" : box.w < 70 || box.h < 34 ? " small" : box.h < 46 ? " short" : "";
const label = (part, box) => fits(box) === " tiny" ? [] : [make("b", {}, show(part.label)),
  make("i", {}, bytes(part.memory) + (part.key || part.rest ? "" : " · " + plural(part.keys, "key")))];
const place = (el, box, width, height) => Object.assign(el.style, {left: 100 * box.x / width + "%", top: 100 * box.y / height + "%",
  width: 100 * box.w / width + "%", height: 100 * box.h / height + "%"});
const CAPTION = 44;

/* Draws the parts of a large tile below its caption. Only the tile itself can be entered. */
const preview = (part, box) => {
  const list = parts(part.node), width = box.w - 10, height = box.h - CAPTION - 5;
  const inside = make("span", {class: "inside", "aria-hidden": "true"});
  squarify(list, width, height).forEach((small, i) => {
    const face = make("span", {class: "part" + fits(small) + (list[i].rest ? " rest" : "")}, make("span", {}, ...label(list[i], small)));
    face.firstChild.style.backgroundColor = colour(list[i].kind);
    place(face, small, width, height);
    inside.append(face);
  });
  return inside;
};

const draw = () => {
  const list = parts(here), width = map.clientWidth, height = map.clientHeight;
  const boxes = list.length && width && height ? squarify(list, width, height) : [];
  tiles = boxes.map((box, i) => {
    const part = list[i], enter = Boolean(part.node), open = enter && box.w > 110 && box.h > 100;
    const face = make("span", {}, ...label(part, box));
    if (open) face.append(preview(part, box));
    else face.style.backgroundColor = colour(part.kind);
    const el = make("button", {type: "button",
      class: "tile" + fits(box) + (part.rest ? " rest" : "") + (enter ? "" : " flat") + (open ? " open" : ""),
      tabindex: i === 0 ? "0" : "-1", "data-name": enter ? show(part.node.full || part.node.name) : undefined,
      "aria-label": `${show(part.label)}, ${bytes(part.memory)}, ${percent(part.memory, here.memory)}` + (enter ? ", enter" : "")}, face);
    place(el, box, width, height);
    if (enter) el.addEventListener("click", () => go(part.node, true));
    el.addEventListener("focus", () => { rove(i); about(part); });
    el.addEventListener("mouseenter", () => about(part));
    return {el, box, part};
  });
  map.replaceChildren(...tiles.map(tile => tile.el));
};

const rove = i => tiles.forEach((tile, k) => tile.el.setAttribute("tabindex", k === i ? "0" : "-1"));

/* Finds the nearest tile in a direction, preferring the one that is most in line. */
const neighbour = (from, dx, dy) => {
  const mid = box => [box.x + box.w / 2, box.y + box.h / 2];
  const [fx, fy] = mid(from.box);
  let best = null, least = Infinity;
  for (const tile of tiles) {
    const [tx, ty] = mid(tile.box), ahead = (tx - fx) * dx + (ty - fy) * dy;
    const aside = Math.abs((tx - fx) * dy) + Math.abs((ty - fy) * dx);
    const cost = ahead + 2 * aside;
    if (tile !== from && ahead > 0.5 && cost < least) { least = cost; best = tile; }
  }
  return best;
};

const go = (node, focus) => {
  const from = here;
  here = node;
  const path = [];
  for (let n = node; n; n = n.parent) path.unshift(n);
  $("crumbs").replaceChildren(...path.map(n => {
    const button = make("button", {type: "button", "aria-current": n === node ? "location" : undefined}, show(n.name));
    if (n !== node) button.addEventListener("click", () => go(n, true));
    return make("li", {}, button);
  }));
  map.classList.remove("enter");
  draw();
  if (focus) {
    void map.offsetWidth;
    map.classList.add("enter");
  }
  if (focus && tiles.length) {
    let i = tiles.findIndex(tile => tile.part.node === from);
    i = i < 0 ? 0 : i;
    rove(i);
    tiles[i].el.focus({preventScroll: true});
  }
  $("about").textContent = `${bytes(node.memory)}, ${percent(node.memory, total.memory)} of all, ${plural(node.keys, "key")}`;
  drawPlace();
};

map.addEventListener("keydown", event => {
  const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  const at = tiles.findIndex(tile => tile.el === document.activeElement);
  let to = null;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape" || event.key === "Backspace") {
    event.preventDefault();
    if (here.parent) go(here.parent, true);
    return;
  }
  if (at >= 0 && moves[event.key]) to = neighbour(tiles[at], ...moves[event.key]);
  else if (event.key === "Home") to = tiles[0];
  else if (event.key === "End") to = tiles[tiles.length - 1];
  else return;
  event.preventDefault();
  if (to) to.el.focus({preventScroll: true});
});

const used = data.types.map(t => t.type);
$("legend").append(...used.map(kind => make("li", {}, swatch(colour(kind)), kind)));

/* Buttons of which one is pressed. */
const choices = (el, names, act) => {
  const buttons = Object.entries(names).map(([value, title]) => make("button", {type: "button", "data-value": value}, title));
  const press = value => {
    buttons.forEach(b => b.setAttribute("aria-pressed", String(b.dataset.value === value)));
    act(value);
  };
  buttons.forEach(b => b.addEventListener("click", () => press(b.dataset.value)));
  el.append(...buttons);
  return press;
};
const modes = {prefix: "Prefixes", pattern: "Patterns"};
const setMode = choices($("by"), modes, value => {
  mode = value;
  go(MODES[mode].root, false);
});

/* ---- what belongs to the place: types, expiry, sizes, keys ---- */

const sorted = [...used].sort();
$("kind").append(make("option", {value: ""}, "All types"), ...sorted.map(kind => make("option", {value: kind}, kind)));
const unitOf = key => key.elements === 1 ? "element" : "elements";
const keyTable = grid({table: $("keys"), by: 2, limit: KEYS_SHOWN, more: $("more"), cols: [
  {title: "Key", head: "key", left: true, wide: true, order: key => key.key, csv: key => key.key,
    cell: key => make("span", {}, dbOf(key), show(key.key) + (key.length ? "…" : ""))},
  {title: "Type", head: "type", left: true, order: key => key.kind, csv: key => key.kind,
    cell: key => make("span", {class: "chip"}, swatch(colour(key.kind)), key.kind)},
  {title: "Memory", head: "memory", order: key => key.memory, csv: key => key.memory, cell: key => bytes(key.memory)},
  {title: "Elements", head: "elements", order: key => key.elements, csv: key => key.elements, cell: key => count(key.elements), unit: unitOf},
  {title: "Longest", head: "longest_element", order: key => key.longest || 0, csv: key => key.longest,
    cell: key => key.longest === null ? "" : bytes(key.longest), unit: () => "longest"},
  {title: "Expires", head: "expires", order: key => key.expires === undefined ? Infinity : key.expires,
    csv: key => key.expires === undefined || isNaN(new Date(key.expires)) ? key.expires : new Date(key.expires).toISOString(),
    cell: key => key.expires === undefined ? "never" : time(key.expires)},
]});
const NEVER = data.expiry.length - 1;
const lastingOf = row => row.detail.expiry.filter(e => e.at === NEVER).reduce((sum, e) => sum + e.memory, 0);
const groupColumns = head => [
  {title: "Name", head, left: true, wide: true, order: row => row.full, csv: row => row.full,
    cell: row => make("span", {}, mode === "prefix" && row.db !== undefined ? dbOf(row) : "", show(row.full || row.name))},
  {title: "Keys", head: "keys", order: row => row.keys, csv: row => row.keys, cell: row => count(row.keys), unit: row => row.keys === 1 ? "key" : "keys"},
  {title: "Memory", head: "memory", order: row => row.memory, csv: row => row.memory, cell: row => bytes(row.memory)},
  {title: "Share", head: "share", order: row => row.memory, csv: row => total.memory ? row.memory / total.memory : 0, cell: row => percent(row.memory, total.memory), unit: () => "of all"},
  {title: "Never expires", head: "memory_without_expiry", order: lastingOf, csv: lastingOf, cell: row => bytes(lastingOf(row)), unit: () => "never expire"},
];
const groupTable = grid({table: $("groups"), by: 2, limit: GROUPS_SHOWN, more: $("groups-more"), cols: groupColumns("name")});

const below = (row, node) => {
  while (row && row !== node) row = row.parent;
  return row === node;
};
let listed = [];
const drawKeys = () => {
  const want = $("search").value.toLowerCase(), kind = $("kind").value, top = !here.parent;
  listed = (top && want ? keys : here.detail.keys)
    .filter(key => (!kind || key.kind === kind) && show(key.key).toLowerCase().includes(want));
  keyTable.fill(listed);
  $("none").hidden = listed.length > 0;
  $("keys-count").textContent = want || kind ? plural(listed.length, "key") + " of this list" : `${count(here.detail.keys.length)} of ${plural(here.keys, "key")}`;
};

const drawPlace = () => {
  for (const el of document.querySelectorAll(".here")) {
    el.textContent = here.parent ? show(here.full || here.name) : "";
    el.hidden = !here.parent;
  }
  const share = row => percent(row.memory, here.memory) + " · " + plural(row.keys, "key");
  bars($("types"), [...here.detail.kinds].sort(byMemory).map(k =>
    ({name: kinds[k.at], value: k.memory, colour: colour(kinds[k.at]), note: share(k)})), here.memory, bytes);
  bars($("expiry"), here.detail.expiry.map(e => {
    const when = data.expiry[e.at].when;
    return {name: when, value: e.memory, note: share(e), colour: when === "expired" ? "var(--past)" : when === "never" ? "var(--never)" : ""};
  }), here.memory, bytes);
  const [from, ...sizes] = here.detail.sizes;
  columns($("spread"), sizes.map((n, i) => ({label: bytes(2 ** (from + i)), value: n,
    text: `${plural(n, "key")} from ${bytes(2 ** (from + i))} to less than ${bytes(2 ** (from + i + 1))}`})));
  $("spread-note").textContent = here.keys ? `${bytes(Math.round(here.memory / here.keys))} on average. Each bar ends at twice the size at which it begins.` : "";
  $("search").value = "";
  drawKeys();
  const rows = MODES[mode].rows.filter(row => row !== here && row.keys > 0 && below(row, here));
  groupTable.fill(rows);
  $("groups-title").textContent = MODES[mode].title;
  $("groups-count").textContent = mode === "prefix" ? plural(rows.length, "prefix", "prefixes") : plural(rows.length, "pattern");
  $("groups-section").hidden = rows.length === 0;
};

const csvName = what => name.replace(/[^A-Za-z0-9._-]+/g, "_") + "-" + what + ".csv";
$("search").addEventListener("input", drawKeys);
$("kind").addEventListener("change", drawKeys);
$("keys-csv").addEventListener("click", () => keyTable.save(csvName("keys")));
$("groups-csv").addEventListener("click", () => groupTable.save(csvName(mode === "prefix" ? "prefixes" : "patterns")));

/* ---- changes ---- */

if (old) {
  const KINDS = {"": "All changes", grew: "Grew", shrank: "Shrank", new: "New", gone: "Gone"};
  const sort = row => row.wasKeys === 0 ? "new" : row.keys === 0 ? "gone" : row.memory > row.wasMemory ? "grew" : row.memory < row.wasMemory ? "shrank" : "";
  const types = kinds.map(kind => {
    const find = list => list.find(t => t.type === kind) || {keys: 0, memory: 0};
    const was = find(old.types), is = find(data.types);
    return {full: kind, keys: is.keys, memory: is.memory, wasKeys: was.keys, wasMemory: was.memory};
  });
  const lists = {prefix: rowsOfPrefixes, pattern: patternNodes.slice(1).filter(row => row.children.length === 0), type: types};
  const signed = (n, format) => n === 0 ? "0" : (n > 0 ? "+" : "−") + format(Math.abs(n));
  const table = grid({table: $("changes"), by: 5, limit: CHANGES_SHOWN, more: $("changes-more"), cols: [
    {title: "Name", head: "name", left: true, wide: true, order: row => row.full, csv: row => row.full, cell: row => make("span", {}, row.db === undefined ? "" : dbOf(row), show(row.full))},
    {title: "Kind", head: "change", left: true, order: sort, csv: sort, cell: row => make("span", {class: "tag " + sort(row)}, sort(row) || "same")},
    {title: "Keys", head: "keys", order: row => row.keys - row.wasKeys, csv: row => row.keys - row.wasKeys, cell: row => signed(row.keys - row.wasKeys, count), unit: () => "keys"},
    {title: "Before", head: "memory_before", order: row => row.wasMemory, csv: row => row.wasMemory, cell: row => bytes(row.wasMemory), unit: () => "before"},
    {title: "After", head: "memory", order: row => row.memory, csv: row => row.memory, cell: row => bytes(row.memory), unit: () => "after"},
    {title: "Change", head: "memory_change", order: row => Math.abs(row.memory - row.wasMemory), csv: row => row.memory - row.wasMemory, cell: row => signed(row.memory - row.wasMemory, bytes)},
  ]});
  let by = "prefix";
  const drawChanges = () => {
    const kind = $("changes-kind").value;
    const rows = lists[by].filter(row => row.memory !== row.wasMemory || row.keys !== row.wasKeys).filter(row => !kind || sort(row) === kind);
    table.fill(rows);
    $("changes-count").textContent = plural(rows.length, "row");
    $("changes-none").hidden = rows.length > 0;
  };
  $("changes-section").hidden = false;
  $("changes-kind").append(...Object.entries(KINDS).map(([value, title]) => make("option", {value}, title)));
  $("changes-kind").addEventListener("change", drawChanges);
  $("changes-csv").addEventListener("click", () => table.save(csvName("changes")));
  choices($("changes-by"), {...modes, type: "Types"}, value => { by = value; drawChanges(); })("prefix");
}

/* ---- the whole snapshot ---- */

const ofAll = row => percent(row.memory, total.memory) + " · " + plural(row.keys, "key");
/* Values of modules are listed by their own types. */
const encodings = [
  ...data.encodings.filter(e => e.type !== "module").map(e => ({...e, name: e.type === "string" ? e.type : e.type + " " + e.encoding})),
  ...(data.modules || []).map(m => ({...m, type: "module", name: m.kind || (m.module ? "module " + show(m.module) : "other modules")})),
];
bars($("encodings"), encodings.sort(byMemory).map(e => ({name: e.name, value: e.memory, colour: colour(e.type), note: ofAll(e)})), total.memory, bytes);
bars($("databases"), data.databases.slice(0, 32).map(d => ({name: "db " + d.db, value: d.memory, note: ofAll(d)})), total.memory, bytes);
if (data.databases.length > 32)
  $("databases").append(make("li", {class: "soft"}, "and " + plural(data.databases.length - 32, "more")));

$("sizes").tHead.append(make("tr", {}, make("th", {scope: "col"}, "Type"), make("th", {scope: "col", class: "left"}, "What"),
  ...["Median", "90 %", "99 %", "99.9 %", "Largest"].map(title => make("th", {scope: "col"}, title))));
for (const t of data.types) {
  const rows = [[t.type === "string" ? "length of the value" : "length of an element", t.element_bytes, bytes], ["elements of a key", t.key_elements, count], ["memory of a key", t.key_memory, bytes]]
    .filter(([, hist]) => hist && hist.n > 0);
  rows.forEach(([what, hist, format], i) => {
    const first = make("th", {scope: "row"}, ...(i === 0 ? [swatch(colour(t.type)), t.type] : [make("span", {class: "sr"}, t.type)]));
    $("sizes").tBodies[0].append(make("tr", {}, first, make("td", {class: "left soft"}, what),
      ...["p50", "p90", "p99", "p999", "max"].map(at => make("td", {}, format(hist[at])))));
  });
}

/* ---- what the page leaves out ---- */

const notes = [`Memory is an estimate of what MEMORY USAGE reports on ${data.memory_of}. The hash tables of the databases take another ${bytes(total.tables)}.`];
if (old && old.memory_of !== data.memory_of) notes.push(`The memory of ${fileName(old)} is estimated for ${old.memory_of}: --for makes both comparable.`);
if (data.types.some(t => t.keys_not_sampled)) notes.push("Lengths of elements of small packed collections come from a sample.");
notes.push(`The page lists the ${data.top_keys.length ? "biggest keys of the snapshot, and the " : ""}${data.kept} biggest keys of each prefix and pattern.` +
  (data.keys_left_out ? ` It has no room for ${plural(data.keys_left_out, "entry").replace(/entrys$/, "entries")} of the smaller groups' lists.` : ""));
if (data.unlisted_prefix_at_most) notes.push("Not all prefixes could be tracked: a prefix that is not listed takes at most " + bytes(data.unlisted_prefix_at_most) + ".");
if (data.prefixes_left_out) notes.push(plural(data.prefixes_left_out, "smaller prefix").replace(/prefixs$/, "prefixes") + " are not on this page.");
if (data.patterns_left_out) notes.push(plural(data.patterns_left_out, "smaller pattern") + " are not on this page.");
notes.push("In patterns, {n} is a number, {uuid}, {hex} and {id} are identifiers, {bytes} is binary, and * is any of many names.");
notes.push(`Times to live are counted from ${moment(data.now)}.`);
notes.push(`Made ${data.made_at ? "at " + moment(data.made_at) + " " : ""}by redoubt ${data.made_by} (redoubt stat) from ${show(data.file)}${old ? " and " + show(old.file) : ""}.`);
$("foot").append(...notes.map(note => make("p", {}, note)));

setMode("prefix");
let width = map.clientWidth, height = map.clientHeight;
addEventListener("resize", () => {
  if (map.clientWidth === width && map.clientHeight === height) return;
  width = map.clientWidth;
  height = map.clientHeight;
  const at = tiles.findIndex(tile => tile.el === document.activeElement);
  draw();
  if (at >= 0) { rove(at); tiles[at].el.focus({preventScroll: true}); }
});
})();
