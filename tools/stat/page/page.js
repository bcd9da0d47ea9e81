(() => {
const KEYS_SHOWN = 25;

const colour = type => `var(--${/^[a-z]+$/.test(type) ? type : "rest"})`;
const dot = type => {
  const el = make("span", {class: "dot"});
  el.style.backgroundColor = colour(type);
  return el;
};

/* ---- head ---- */

const total = data.total;
const name = show(data.file.split("/").pop()) || "Snapshot";
document.title = name + " – snapshot report";
$("title").textContent = name;
const server = data.dialect === "valkey" ? "Valkey" : "Redis";
$("sub").textContent = server + " RDB " + data.rdb_version +
  (data.written_by ? `, written by ${server} ${data.written_by}` : "") +
  (data.written_at ? (data.written_by ? " at " : ", written at ") + data.written_at.replace("T", " ") : "");

figure("Keys", count(total.keys), plural(data.databases.length, "database"));
figure("Memory", bytes(total.memory), "estimate for " + data.memory_of);
figure("File", bytes(data.bytes), data.used_memory ? bytes(data.used_memory) + " used by the server when saved" : plural(total.elements, "element"));
figure("Expire", percent(total.expires, total.keys), plural(total.expires, "key"));

/* ---- bars ---- */

const bars = (id, rows, whole, format) => {
  const list = $(id);
  const most = Math.max(1, ...rows.map(row => row.value));
  for (const row of rows) {
    const fill = make("div", {class: "fill"});
    fill.style.width = 100 * row.value / most + "%";
    fill.style.backgroundColor = row.colour || "";
    fill.hidden = row.value === 0;
    list.append(make("li", {},
      make("div", {class: "row"},
        make("span", {class: "name"}, row.name),
        make("span", {class: "value"}, format(row.value), make("small", {}, row.note || percent(row.value, whole)))),
      make("div", {class: "track", "aria-hidden": "true"}, fill)));
  }
};
const byMemory = (a, b) => b.memory - a.memory;
const share = row => percent(row.memory, total.memory) + " · " + plural(row.keys, "key");
bars("types", [...data.types].sort(byMemory).map(t =>
  ({name: t.type, value: t.memory, colour: colour(t.type), note: share(t)})), total.memory, bytes);
bars("expiry", data.expiry.filter((e, i) => e.keys || i === 0 || i + 1 === data.expiry.length).map(e =>
  ({name: e.when, value: e.keys, note: percent(e.keys, total.keys) + " · " + bytes(e.memory),
    colour: e.when === "expired" ? "var(--past)" : e.when === "never" ? "var(--never)" : ""})), total.keys, count);
bars("encodings", [...data.encodings].sort(byMemory).map(e =>
  ({name: e.type === "string" ? e.type : e.type + " " + e.encoding, value: e.memory, colour: colour(e.type), note: share(e)})), total.memory, bytes);
bars("databases", data.databases.slice(0, 32).map(d => ({name: "db " + d.db, value: d.memory, note: share(d)})), total.memory, bytes);
if (data.databases.length > 32)
  $("databases").append(make("li", {class: "soft"}, "and " + plural(data.databases.length - 32, "more")));

/* ---- the tree of prefixes ---- */

const root = {name: "All keys", memory: total.memory, keys: total.keys, children: [], depth: 0};
const several = data.databases.length > 1;
const bases = new Map();
for (const d of data.databases)
  bases.set(d.db, several ? {name: "db " + d.db, memory: d.memory, keys: d.keys, db: d.db, prefix: "", parent: root, children: []} : root);
if (several) root.children.push(...bases.values());
else root.db = data.databases.length ? data.databases[0].db : 0;
root.prefix = "";

const nodes = new Map();
for (const p of [...data.prefixes].sort((a, b) => a.level - b.level)) {
  const base = bases.get(p.db) || root;
  let parent = base;
  for (let at = p.prefix.length; parent === base && at > 0;) {
    at = p.prefix.lastIndexOf(data.separator, at - 1);
    const above = at > 0 ? nodes.get(p.db + " " + p.prefix.slice(0, at)) : undefined;
    if (above && above.prefix !== p.prefix) parent = above;
  }
  const node = {name: p.prefix.startsWith(parent.prefix) ? p.prefix.slice(parent.prefix.length) : p.prefix,
    prefix: p.prefix, db: p.db, memory: p.memory, keys: p.keys, missed: p.missed_at_most, types: p.types, parent, children: []};
  nodes.set(p.db + " " + p.prefix, node);
  nodes.set(p.db + " " + p.prefix.slice(0, -data.separator.length), node);
  parent.children.push(node);
}

const mainType = types => types ? Object.keys(types).reduce((a, b) => types[b] > (types[a] || 0) ? b : a, "rest") : null;
/* A database has the colour of the type that takes most memory in its prefixes. */
const typeOf = node => {
  if (node.types) return mainType(node.types);
  const sums = {};
  for (const child of node.children)
    for (const [type, memory] of Object.entries(child.types || {})) sums[type] = (sums[type] || 0) + memory;
  return mainType(sums) || "rest";
};
const within = (key, node) => node === root ||
  (key.db === node.db && (node.prefix === "" || key.key.startsWith(node.prefix)));

/* The parts of a node that are drawn: its prefixes, or else its biggest keys, and the rest. */
const parts = node => {
  let list = node.children.map(child => ({node: child, label: child.name, memory: child.memory, keys: child.keys, type: typeOf(child)}));
  if (!list.length)
    list = data.biggest.filter(key => within(key, node)).slice(0, 60)
      .map(key => ({label: key.key.slice((node.prefix || "").length) || key.key, memory: key.memory, keys: 1, type: key.type, key}));
  list.sort(byMemory);
  const shown = list.slice(0, 120);
  const memory = node.memory - shown.reduce((sum, part) => sum + part.memory, 0);
  const keys = node.keys - shown.reduce((sum, part) => sum + part.keys, 0);
  if (memory > 0 && keys > 0)
    shown.push({label: shown.length ? plural(keys, "other key") : plural(keys, "key"), memory, keys, type: "rest", rest: true});
  return shown.filter(part => part.memory > 0).sort(byMemory);
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
let here = root, tiles = [];

const about = part => {
  const text = part.key ? `${show(part.key.key)} – ${bytes(part.memory)}, ${part.type}, ${plural(part.key.elements, "element")}`
    : `${show(part.node ? part.node.prefix || part.node.name : part.label)} – ${bytes(part.memory)}, ${percent(part.memory, total.memory)} of all` +
      (part.rest ? "" : ", " + plural(part.keys, "key")) + (part.node && part.node.missed ? `, at most ${bytes(part.node.missed)} more` : "");
  $("about").textContent = text;
};

/* The contents of a tile: how much fits into it, its text and its colour. */
const fits = box => box.w < 34 || box.h < 18 ? " tiny" : box.w < 70 || box.h < 34 ? " small" : box.h < 46 ? " short" : "";
const label = part => [make("b", {}, show(part.label)),
  make("i", {}, bytes(part.memory) + (part.key || part.rest ? "" : " · " + plural(part.keys, "key")))];
const place = (el, box, width, height) => Object.assign(el.style, {left: 100 * box.x / width + "%", top: 100 * box.y / height + "%",
  width: 100 * box.w / width + "%", height: 100 * box.h / height + "%"});
const CAPTION = 44;

/* Draws the parts of a large tile below its caption. Only the tile itself can be entered. */
const preview = (part, box) => {
  const list = parts(part.node), width = box.w - 10, height = box.h - CAPTION - 5;
  const inside = make("span", {class: "inside", "aria-hidden": "true"});
  squarify(list, width, height).forEach((small, i) => {
    const face = make("span", {class: "part" + fits(small) + (list[i].rest ? " rest" : "")}, make("span", {}, ...label(list[i])));
    face.firstChild.style.backgroundColor = colour(list[i].type);
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
    const face = make("span", {}, ...label(part));
    if (open) face.append(preview(part, box));
    else face.style.backgroundColor = colour(part.type);
    const el = make("button", {type: "button",
      class: "tile" + fits(box) + (part.rest ? " rest" : "") + (enter ? "" : " flat") + (open ? " open" : ""),
      tabindex: i === 0 ? "0" : "-1", "data-name": enter ? show(part.node.prefix || part.node.name) : undefined,
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
  void map.offsetWidth;
  map.classList.add("enter");
  $("about").textContent = `${bytes(node.memory)}, ${percent(node.memory, total.memory)} of all, ${plural(node.keys, "key")}`;
  if (focus && tiles.length) {
    let i = tiles.findIndex(tile => tile.part.node === from);
    i = i < 0 ? 0 : i;
    rove(i);
    tiles[i].el.focus({preventScroll: true});
  }
  keys.draw();
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

const used = [...new Set([...data.types.map(t => t.type)])];
$("legend").append(...used.map(type => make("li", {}, dot(type), type)));

/* ---- the table of keys ---- */

const keys = (() => {
  const columns = [
    {title: "Key", text: key => show(key.key) + (key.key_length ? "…" : ""), order: key => key.key},
    {title: "Type", text: key => key.type, order: key => key.type},
    {title: "Memory", text: key => bytes(key.memory), order: key => key.memory},
    {title: "Elements", text: key => count(key.elements), order: key => key.elements, unit: key => key.elements === 1 ? "element" : "elements"},
    {title: "Longest", text: key => key.largest_element === undefined ? "" : bytes(key.largest_element), order: key => key.largest_element || 0, unit: () => "longest"},
    {title: "Expires", text: key => key.expire_ms === undefined ? "" : time(key.expire_ms), order: key => key.expire_ms === undefined ? Infinity : key.expire_ms},
  ];
  let by = 2, down = true, all = false;
  const head = $("keys").tHead.rows[0], body = $("keys").tBodies[0];
  const search = $("search"), kind = $("kind");
  const known = new Map();
  for (const key of [...data.biggest, ...data.most_elements]) known.set(key.db + " " + key.key, key);
  const rows = [...known.values()];

  columns.forEach((column, i) => {
    const button = make("button", {type: "button"}, column.title);
    button.addEventListener("click", () => {
      down = by === i ? !down : i >= 2 && i <= 4;
      by = i;
      api.draw();
    });
    head.append(make("th", {scope: "col"}, button));
  });
  kind.append(make("option", {value: ""}, "All types"), ...used.map(type => make("option", {value: type}, type)));

  const line = key => {
    const cells = columns.map((column, i) => make("td", {class: i === 0 ? "key mono" : i === 1 ? "" : undefined, "data-unit": column.unit ? column.unit(key) : undefined}, column.text(key)));
    if (several) cells[0].prepend(make("span", {class: "soft"}, "db" + key.db + " "));
    cells[1].replaceChildren(make("span", {class: "chip"}, dot(key.type), key.type));
    return make("tr", {}, ...cells);
  };

  const api = {draw() {
    const want = search.value.toLowerCase(), order = columns[by].order;
    const found = rows.filter(key => within(key, here) && (!kind.value || key.type === kind.value) && show(key.key).toLowerCase().includes(want));
    found.sort((a, b) => {
      const x = order(a), y = order(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    const shown = all ? found : found.slice(0, KEYS_SHOWN);
    body.replaceChildren(...shown.map(line));
    [...head.cells].forEach((cell, i) => i === by ? cell.setAttribute("aria-sort", down ? "descending" : "ascending") : cell.removeAttribute("aria-sort"));
    $("keys-count").textContent = (here === root ? "" : "in " + show(here.prefix || here.name) + ", ") + plural(found.length, "key");
    $("none").hidden = found.length > 0;
    $("keys").hidden = found.length === 0;
    $("more").hidden = shown.length === found.length;
    $("more").textContent = "Show all " + count(found.length);
  }};
  search.addEventListener("input", api.draw);
  kind.addEventListener("change", api.draw);
  $("more").addEventListener("click", () => { all = true; api.draw(); });
  return api;
})();

/* ---- sizes ---- */

$("sizes").tHead.append(make("tr", {}, make("th", {scope: "col"}, "Type"), make("th", {scope: "col", class: "left"}, "What"),
  ...["Median", "90 %", "99 %", "99.9 %", "Largest"].map(title => make("th", {scope: "col"}, title))));
for (const t of data.types) {
  const rows = [[t.type === "string" ? "length" : "element", t.element_bytes, bytes], ["elements per key", t.key_elements, count], ["memory per key", t.key_memory, bytes]]
    .filter(([, hist]) => hist && hist.n > 0);
  rows.forEach(([what, hist, format], i) => {
    const first = make("td", {}, ...(i === 0 ? [dot(t.type), t.type] : []));
    $("sizes").tBodies[0].append(make("tr", {}, first, make("td", {class: "left soft"}, what),
      ...["p50", "p90", "p99", "p999", "max"].map(at => make("td", {}, format(hist[at])))));
  });
}

/* ---- the rest ---- */

const notes = ["Memory is an estimate of what MEMORY USAGE reports; the hash tables of the databases take another " + bytes(total.tables) + "."];
if (data.types.some(t => t.keys_not_sampled)) notes.push("Element lengths of small packed collections come from a sample.");
if (data.unlisted_prefix_at_most) notes.push("Not all prefixes could be tracked: a prefix that is not listed takes at most " + bytes(data.unlisted_prefix_at_most) + ".");
if (data.prefixes_left_out) notes.push(plural(data.prefixes_left_out, "smaller prefix").replace(/prefixs$/, "prefixes") + " are not on this page.");
notes.push("Expiry is relative to " + data.now.replace("T", " ") + ". Generated by redoubt stat.");
$("foot").append(...notes.map(note => make("p", {}, note)));

go(root, false);
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
