/* views.js - the keys of a snapshot, the commands of a log, the comparison of two files. */

/* ---- text of any bytes ---- */

/* The bytes of a string of the tools. */
const bytesOfText = text => {
  const encoder = new TextEncoder(), out = [];
  for (const c of text) {
    const n = c.codePointAt(0);
    if (n >= 0xdc80 && n <= 0xdcff) out.push(n - 0xdc00);
    else out.push(...encoder.encode(c));
  }
  return out;
};
const isBinary = text => /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\udc80-\udcff]/u.test(text);

const HEX_MAX = 4096;
const hex = text => {
  const all = bytesOfText(text), lines = [];
  for (let at = 0; at < Math.min(all.length, HEX_MAX); at += 16) {
    const row = all.slice(at, at + 16);
    lines.push(at.toString(16).padStart(8, "0") + "  " + row.map(b => b.toString(16).padStart(2, "0")).join(" ").padEnd(48) + " " +
      row.map(b => b >= 32 && b < 127 ? String.fromCharCode(b) : ".").join(""));
  }
  if (all.length > HEX_MAX) lines.push("… and " + count(all.length - HEX_MAX) + " more bytes");
  return lines.join("\n");
};
const valueText = text => typeof text !== "string" ? JSON.stringify(text) : isBinary(text) ? hex(text) : show(text);
const moment = ms => { const date = new Date(ms); return isNaN(date) ? count(ms) + " ms" : date.toISOString().replace("T", " "); };

/* Splits a stream of text into lines. */
const byLine = take => {
  let rest = "";
  return text => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) take(line);
  };
};

/* ---- keys ---- */

const KEYS_AT_ONCE = 200, ELEMENTS_MAX = 1000;

const cells = (...texts) => make("tr", {}, ...texts.map(text => make("td", {}, make("pre", {class: "value"}, text))));
const tableOf = (head, rows) => {
  const box = make("div", {class: "scroll"}), shown = rows.slice(0, ELEMENTS_MAX);
  box.append(make("table", {}, make("thead", {}, make("tr", {}, ...head.map(text => make("th", {scope: "col"}, text)))), make("tbody", {}, ...shown.map(row => cells(...row)))));
  if (rows.length > shown.length) box.append(make("p", {class: "soft"}, "The first " + count(shown.length) + " of " + count(rows.length) + "."));
  return box;
};

const drawStream = value => {
  const parts = [tableOf(["ID", "Fields"], value.entries.map(e => [e.id, e.fields.map(([f, v]) => valueText(f) + ": " + valueText(v)).join("\n")]))];
  parts.push(make("p", {class: "soft"}, plural(value.length, "entry", "entries") + ", last ID " + value.last_id + (value.entries_added === undefined ? "" : ", added " + count(value.entries_added))));
  for (const {name, last_id, pending, consumers} of value.groups) {
    parts.push(make("h3", {}, "Group " + show(name)), make("p", {class: "soft"}, "last ID " + last_id + ", " + count(pending.length) + " pending"));
    const owner = p => p.consumer === null ? "nobody" : show(p.consumer);
    if (pending.length > 0)
      parts.push(tableOf(["Pending ID", "Delivered", "Times", "Consumer"], pending.map(p => [p.id, moment(p.delivery_ms), count(p.delivery_count), owner(p)])));
    const active = ({active_ms: ms}) => ms === undefined ? "" : ms < 0 ? "never" : moment(ms);
    if (consumers.length > 0)
      parts.push(tableOf(["Consumer", "Seen", "Active"], consumers.map(c => [show(c.name), moment(c.seen_ms), active(c)])));
  }
  return parts;
};

const drawValue = key => {
  const {type, value, field_expire_ms: expiries = {}} = key;
  if (type === "string") return [make("pre", {class: "value"}, valueText(value))];
  if (type === "hash") {
    const rows = Object.entries(value), expiring = Object.keys(expiries).length > 0;
    return [tableOf(["Field", "Value", ...(expiring ? ["Expires"] : [])], rows.map(([f, v]) => [valueText(f), valueText(v), ...(expiring ? [f in expiries ? moment(expiries[f]) : ""] : [])]))];
  }
  if (type === "zset") return [tableOf(["Member", "Score"], value.map(([m, s]) => [valueText(m), String(s)]))];
  if (type === "list") return [tableOf(["Index", "Element"], value.map((e, i) => [String(i), valueText(e)]))];
  if (type === "set") return [tableOf(["Member"], value.map(e => [valueText(e)]))];
  if (type === "stream") return drawStream(value);
  return [make("pre", {class: "value"}, show(JSON.stringify(value, null, 2)))];
};

const sizeOfValue = ({type, value}) =>
  type === "string" ? plural(bytesOfText(value).length, "byte") : type === "stream" ? plural(value.length, "entry", "entries") :
    Array.isArray(value) ? plural(value.length, type === "set" || type === "zset" ? "member" : "element") : type === "hash" ? plural(Object.keys(value).length, "field") : "";

const drawKey = key => {
  const about = [key.type, sizeOfValue(key), "db " + key.db, key.expire_ms !== undefined ? "expires " + moment(key.expire_ms) : ""].filter(Boolean).join(" · ");
  const details = make("details", {}, make("summary", {}, make("span", {class: "name mono"}, key.key === "" ? "(empty name)" : show(key.key)), make("span", {class: "kind"}, about)));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(...drawValue(key)); });
  return make("li", {}, details);
};

/* A search without a wildcard finds names that contain the text. */
const globOf = text => /[*?[\\]/.test(text) ? text : "*" + text + "*";
const escapeGlob = text => text.replace(/[*?[\]\\]/g, c => "\\" + c);

async function openKeys(source, panel) {
  const search = make("input", {type: "search", id: "key-search", "aria-label": "Part of a name, or a pattern with *", placeholder: "Part of a name, or a pattern with *"});
  const type = make("select", {"aria-label": "Type"}, make("option", {value: ""}, "every type"), ...["string", "list", "set", "zset", "hash", "stream", "module"].map(t => make("option", {value: t}, t)));
  const crumbs = make("ul", {class: "prefixes", "aria-label": "Prefixes"}), list = make("ol", {class: "keylist", id: "keys"}), note = make("p", {class: "soft", id: "keys-note"});
  const more = make("button", {type: "button", class: "more", id: "keys-more", hidden: true}, "Show more");
  let prefix = "", seen = 0;

  const find = async (skip = 0) => {
    const keys = [], prefixes = new Map();
    let at = 0, full = false;
    if (skip === 0) list.replaceChildren();
    note.textContent = "Searching …";
    more.hidden = true;
    const filters = [...(search.value ? ["--match", globOf(search.value)] : []), ...(prefix ? ["--match", escapeGlob(prefix) + "*"] : []), ...(type.value ? ["--type", type.value] : [])];
    /* Two patterns of one option are alternatives, so the prefix is compared here, too. */
    const wanted = key => key.key.startsWith(prefix) && (!search.value || matches(globOf(search.value), key.key));
    const take = byLine(line => {
      if (full || !line) return;
      const key = JSON.parse(line);
      if (key.key === undefined || !wanted(key) || at++ < skip) return;
      keys.push(key);
      const rest = key.key.slice(prefix.length), colon = rest.indexOf(":");
      if (colon >= 0) prefixes.set(rest.slice(0, colon + 1), (prefixes.get(rest.slice(0, colon + 1)) || 0) + 1);
      list.append(drawKey(key));
      if (keys.length >= KEYS_AT_ONCE) { full = true; stop(); }
    });
    const result = await work("Searching " + source.path, {args: ["convert", "--to", "ndjson", ...filters, argument(source.path)], sources: [source]}, {text: take});
    if (!panel.isConnected || !list.isConnected) return;
    seen = skip + keys.length;
    const end = full ? ". There may be more" : result.cancelled ? ". Cancelled: there may be more" : "";
    note.textContent = "Keys: " + count(seen) + end + (result.status > 0 && result.error ? ". " + result.error.trim() : "");
    announce(note.textContent);
    more.hidden = !full;
    crumbs.replaceChildren(
      ...(prefix ? [make("li", {}, make("button", {type: "button", click: () => { prefix = prefix.replace(/[^:]*:$/, ""); find(); }}, "↑ " + show(prefix)))] : []),
      ...[...prefixes].filter(([, n]) => n > 1).sort((a, b) => b[1] - a[1]).slice(0, 24).map(([name, n]) =>
        make("li", {}, make("button", {type: "button", click: () => { prefix += name; find(); }}, show(prefix + name) + " ", make("small", {class: "soft"}, count(n) + (full ? "+" : ""))))));
  };
  more.addEventListener("click", () => find(seen));
  const form = make("form", {class: "tools", submit: e => { e.preventDefault(); find(); }}, search, type, make("button", {class: "more"}, "Search"));
  panel.append(section("Keys", form, crumbs, note, list, more));
  await find();
}

/* Whether a name matches a pattern of KEYS; for names that the tool found already. */
const matches = (glob, name) => {
  let source = "";
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i];
    if (c === "*") source += "[^]*";
    else if (c === "?") source += "[^]";
    else if (c === "[") {
      const end = glob.indexOf("]", i + 1);
      if (end < 0) { source += "\\["; continue; }
      source += "[" + glob.slice(i + 1, end).replace(/\\/g, "\\\\") + "]";
      i = end;
    } else source += (c === "\\" && i + 1 < glob.length ? glob[++i] : c).replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  }
  try { return new RegExp("^" + source + "$").test(name); } catch { return true; }
};

/* ---- comparison ---- */

async function openCompare(source, panel) {
  const others = sources.filter(s => s !== source);
  if (others.length === 0) {
    panel.append(section("Compare", make("p", {}, "Open a second file: then this view compares the two.")));
    return;
  }
  const select = make("select", {id: "other", "aria-label": "The earlier file"}, ...others.map((s, i) => make("option", {value: String(i)}, s.path)));
  const box = make("div", {id: "comparison"});
  const go = async () => {
    const other = others[Number(select.value)], name = outName(source, ".differences.html");
    box.replaceChildren();
    await openReport(source, box, {what: "Comparing", name, title: "Differences", inputs: [other, source],
      args: ["diff", "--values", "--force", "--html", argument(name), argument(other.path), argument(source.path)]});
  };
  panel.append(section("Compare", make("form", {class: "tools", submit: e => { e.preventDefault(); go(); }},
    make("span", {}, "What changed since"), select, make("button", {class: "more", id: "compare"}, "Compare"))), box);
}

/* ---- commands of a log ---- */

const COMMANDS_AT_ONCE = 500, MASS = 100;
const REMOVERS = ["FLUSHALL", "FLUSHDB", "DEL", "UNLINK"];

/* Why a command is marked: it removes everything, or many keys. */
const markOf = command => {
  const name = command[0].toUpperCase();
  if (name === "FLUSHALL") return "removes all keys";
  if (name === "FLUSHDB") return "removes the keys of a database";
  return (name === "DEL" || name === "UNLINK") && command.length > MASS ? "removes " + count(command.length - 1) + " keys" : "";
};

const offsetOf = entry => (entry.file !== undefined ? entry.file + ":" : entry.chapter !== undefined ? entry.chapter + ":" : "") + entry.offset;

/* The data before a command, as a snapshot. */
async function before(source, entry, box) {
  const name = outName(source, ".before-" + entry.number + ".rdb");
  box.textContent = "Replaying …";
  const result = await work("Replaying " + source.path, {sources: [source], outputs: [name],
    args: ["convert", "--to", "rdb", "--force", "--until-offset", offsetOf(entry), "-o", argument(name), argument(source.path)]});
  const blob = result.made["/" + name];
  if (result.cancelled) { box.textContent = "Cancelled"; return; }
  if (!blob) { box.textContent = result.error.trim() || result.failed || "There is no data."; return; }
  box.replaceChildren(download(blob, name), make("button", {type: "button", class: "more", click: () => addSource({path: name, files: [{path: name, file: blob}], kind: "snapshot"})}, "Open it here"));
  announce(name + " is ready");
}

const drawCommand = (source, entry) => {
  const mark = markOf(entry.command), made = make("span", {class: "tools"});
  const when = entry.time_s !== undefined ? moment(entry.time_s * 1000) : entry.time_us !== undefined ? moment(entry.time_us / 1000) : "no time";
  const words = entry.command.slice(0, 12).map(word => isBinary(word) || /[\s"']/.test(word) || word === "" ? JSON.stringify(show(word.slice(0, 200))) : show(word.slice(0, 200)));
  return make("li", {class: mark ? "marked" : false},
    make("div", {class: "row"}, make("span", {class: "name mono"}, words.join(" ") + (entry.command.length > 12 ? " …" : "")),
      make("span", {class: "kind"}, mark ? make("strong", {}, mark + " · ") : null, when + " · " + offsetOf(entry) + " · db " + entry.db)),
    make("div", {class: "tools"}, make("button", {type: "button", class: "more small", click: () => before(source, entry, made)}, "Data before this command"), made));
};

async function openCommands(source, panel) {
  const name = make("input", {type: "search", id: "command-search", "aria-label": "Command, such as DEL or *SET", placeholder: "Command, such as DEL or *SET"});
  const key = make("input", {type: "search", "aria-label": "Pattern of keys", placeholder: "Pattern of keys"});
  const list = make("ol", {class: "keylist", id: "commands"}), note = make("p", {class: "soft", id: "commands-note"});
  const marked = make("button", {type: "button", class: "more", id: "marked"}, "FLUSHALL and mass deletions");
  const find = async (filters, wanted) => {
    let n = 0, full = false;
    list.replaceChildren();
    note.textContent = "Searching …";
    const take = byLine(line => {
      if (full || !line) return;
      const entry = JSON.parse(line);
      if (entry.command === undefined || !wanted(entry)) return;
      list.append(drawCommand(source, entry));
      if (++n >= COMMANDS_AT_ONCE) { full = true; stop(); }
    });
    const result = await work("Reading " + source.path, {args: ["show", "--ndjson", "--full", ...filters, argument(source.path)], sources: [source]}, {text: take});
    if (!list.isConnected) return;
    note.textContent = "Commands: " + count(n) + (full ? ". There are more: search for a command or keys" : result.cancelled ? ". Cancelled" : "") + (result.error ? ". " + result.error.trim() : "");
    announce(note.textContent);
  };
  const search = () => find([...(name.value ? ["--command", name.value] : []), ...(key.value ? ["--match", key.value] : [])], () => true);
  marked.addEventListener("click", () => find(REMOVERS.flatMap(c => ["--command", c]), entry => markOf(entry.command) !== ""));
  panel.append(section("Commands", make("form", {class: "tools", submit: e => { e.preventDefault(); search(); }}, name, key, make("button", {class: "more"}, "Search"), marked), note, list));
  await search();
}

async function openTime(source, panel) {
  const name = outName(source, ".commands.html");
  await openReport(source, panel, {what: "Reading " + source.path, name, title: "Commands over time",
    args: ["show", "--force", "--html", argument(name), argument(source.path)]});
}

Object.assign(views, {
  keys: {title: "Keys", kinds: ["snapshot", "log"], open: openKeys},
  commands: {title: "Commands", kinds: ["log"], open: openCommands},
  time: {title: "Over time", kinds: ["log"], open: openTime},
  compare: {title: "Compare", kinds: ["snapshot", "log"], open: openCompare},
});
