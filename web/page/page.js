/* page.js - the page: sources, jobs and views, and the verdict of a source. */

const announce = text => { $("status").textContent = text; };

/* ---- the tools ---- */

let compiled = null;
const compile = () => compiled ||= (async () => {
  const text = $("wasm").textContent, raw = atob(text), code = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) code[i] = raw.charCodeAt(i);
  $("wasm").textContent = "";
  const worker = URL.createObjectURL(new Blob([$("worker").textContent], {type: "text/javascript"}));
  return {module: await WebAssembly.compile(code), worker};
})();

/* Runs a tool on sources in a worker of its own. Gives {done, cancel}; done gives {status, text,
 * error, made}. on has text, progress: functions that are called meanwhile; with on.text, the text
 * is not collected. */
const runHere = ({args, sources, outputs = []}, on) => {
  let worker = null, end = null;
  const result = {status: null, text: "", error: "", made: {}};
  const done = new Promise((resolve, reject) => {
    end = resolve;
    compile().then(({module, worker: url}) => {
      if (end === null) return;
      worker = new Worker(url);
      let rest = "";
      const line = text => {
        if (text.startsWith('{"progress":')) {
          try { if (on.progress) on.progress(JSON.parse(text).progress); return; } catch { /* a line of the tool */ }
        }
        if (text) result.error += text + "\n";
      };
      worker.onmessage = ({data}) => {
        if (data.text !== undefined) on.text ? on.text(data.text) : result.text += data.text;
        if (data.error !== undefined) {
          const lines = (rest + data.error).split("\n");
          rest = lines.pop();
          lines.forEach(line);
        }
        if (data.failed !== undefined) result.failed = data.failed;
        if (data.status !== undefined || data.failed !== undefined) {
          line(rest);
          worker.terminate();
          resolve({...result, status: data.status ?? null, made: data.made || {}});
        }
      };
      worker.onerror = e => { worker.terminate(); resolve({...result, failed: e.message || "the worker failed"}); };
      const inputs = sources.flatMap(s => s.files.map(f => ({path: "/" + f.path, file: f.file})));
      worker.postMessage({module, args, inputs, outputs: outputs.map(o => "/" + o)});
    }).catch(reject);
  });
  return {done, cancel: () => {
    if (worker) worker.terminate();
    if (end) end({...result, cancelled: true});
    end = null;
  }};
};

/* ---- jobs: one at a time, with progress ---- */

let job = null;
const stop = () => { if (job) job.cancel(); };

const work = async (what, order, on = {}) => {
  stop();
  const bar = $("job-bar"), began = performance.now();
  bar.removeAttribute("value");
  $("job-text").textContent = what;
  const show = setTimeout(() => { $("job").hidden = false; }, 120);
  const mine = job = runHere({...order, args: ["--whole-lines", ...order.args.slice(0, 1), "--progress=json", ...order.args.slice(1)]}, {
    text: on.text,
    progress: ({bytes: at, total}) => {
      if (total) { bar.max = total; bar.value = at; } else bar.removeAttribute("value");
      $("job-text").textContent = what + ": " + bytes(at) + (total ? " of " + bytes(total) : "");
      if (on.progress) on.progress(at, total);
    },
  });
  const result = await mine.done.catch(e => ({failed: e.message, text: "", error: "", made: {}}));
  clearTimeout(show);
  result.seconds = (performance.now() - began) / 1000;
  if (job === mine) { job = null; $("job").hidden = true; }
  return result;
};

/* ---- sources ---- */

const sources = [];
let current = null;

const headOf = async file => new Uint8Array(await file.slice(0, 9).arrayBuffer());
const startsWith = (head, text) => [...text].every((c, i) => head[i] === c.charCodeAt(0));

const kindOf = async (name, file) => {
  const head = await headOf(file);
  if (startsWith(head, "REDIS") || startsWith(head, "VALKEY")) return "snapshot";
  if (startsWith(head, "*") || startsWith(head, "#")) return "log";
  return /\.aof(\.|$)|\.manifest$/.test(name) ? "log" : "snapshot";
};

/* An argument that no tool takes for an option or for standard input. */
const argument = path => path.startsWith("-") ? "./" + path : path;

const addSource = source => {
  const same = sources.findIndex(s => s.path === source.path);
  if (same >= 0) sources.splice(same, 1);
  sources.push(source);
  drawSources();
  choose(source);
};

const addFiles = async list => {
  const folders = new Map();
  let last = null;
  for (const {path, file} of list) {
    const slash = path.lastIndexOf("/");
    if (slash < 0) last = {path, files: [{path, file}], kind: await kindOf(path, file)};
    else {
      const top = path.slice(0, path.indexOf("/"));
      if (!folders.has(top)) folders.set(top, []);
      folders.get(top).push({path, file});
      continue;
    }
    addSource(last);
  }
  for (const [top, files] of folders) await addFolder(top, files);
};

/* A folder with a manifest or a capture is one source; each snapshot in another folder is one. */
const addFolder = async (top, files) => {
  const logs = new Set();
  for (const {path} of files) {
    const folder = path.slice(0, path.lastIndexOf("/")), name = path.slice(folder.length + 1);
    if (name.endsWith(".manifest") || name === "capture.json" || /\.seg(ment)?$/.test(name) || name === "index") logs.add(folder);
  }
  const isIn = (path, folder) => path.startsWith(folder + "/");
  for (const folder of logs)
    if (![...logs].some(other => other !== folder && isIn(folder, other)))
      addSource({path: folder, files: files.filter(f => isIn(f.path, folder)), kind: "log", folder: true});
  for (const f of files)
    if (![...logs].some(folder => isIn(f.path, folder)) && /\.(rdb|aof)(\.(gz|lz4|zst))?$/.test(f.path))
      addSource({path: f.path, files: [f], kind: await kindOf(f.path, f.file)});
  if (logs.size === 0 && !files.some(f => /\.(rdb|aof)(\.(gz|lz4|zst))?$/.test(f.path)))
    addSource({path: top, files, kind: "log", folder: true});
};

const sizeOf = source => source.files.reduce((sum, f) => sum + f.file.size, 0);

const drawSources = () => {
  $("sources-section").hidden = sources.length === 0;
  $("sources").replaceChildren(...sources.map(source => make("li", {},
    make("button", {type: "button", "aria-pressed": String(source === current), click: () => choose(source)},
      source.path, make("small", {}, (source.folder ? "folder, " : "") + bytes(sizeOf(source)))))));
};

const choose = source => {
  current = source;
  drawSources();
  $("work").hidden = false;
  drawTabs();
  openView("verdict");
};

/* ---- text of the tools ---- */

/* The lines of a report: the headline, facts with a label each, and what follows from them. A label
 * has ten letters, or blanks in their place. */
const parseReport = text => {
  const heads = [], facts = [];
  for (const line of text.split("\n").filter(line => line !== "")) {
    const [, label, rest] = /^ {2}(.{10}) (.*)$/.exec(line) || [];
    if (label === undefined) heads.push(line);
    else if (label.trim() !== "" || facts.length === 0) facts.push([label.trim(), rest]);
    else facts[facts.length - 1][1] += "\n" + rest;
  }
  return {head: heads.shift() || "", facts, ends: heads};
};

const moodOf = result => result.status === 0 ? "good" : result.status === 4 || result.status === 8 ? "odd" : "bad";

const report = result => {
  const {head, facts, ends} = parseReport(result.text), parts = [];
  const headline = head || (result.failed ? "The page failed: " + result.failed : result.error.split("\n")[0]);
  parts.push(make("p", {class: "verdict " + moodOf(result), id: "headline"}, headline));
  if (facts.length > 0)
    parts.push(make("dl", {class: "facts"}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])));
  parts.push(...ends.map(text => make("p", {class: "note"}, text)));
  const more = result.error.trim();
  if (more && !head) {
    const rest = more.split("\n").slice(1).join("\n");
    if (rest) parts.push(make("p", {class: "note"}, rest));
  } else if (more && result.status !== 0 && facts.length === 0) parts.push(make("p", {class: "note"}, more));
  announce(headline);
  return parts;
};

/* ---- views ---- */

const views = {
  verdict: {title: "Verdict", kinds: ["snapshot", "log"], open: openVerdict},
  contents: {title: "Contents and memory", kinds: ["snapshot", "log"], open: openContents},
};
let view = "verdict";

const viewsHere = () => Object.entries(views).filter(([, v]) => v.kinds.includes(current.kind));

const drawTabs = () => {
  $("tabs").replaceChildren(...viewsHere().map(([name, v]) => make("button", {type: "button", role: "tab", id: "tab-" + name,
    "aria-selected": String(name === view), "aria-controls": "panel", tabindex: name === view ? "0" : "-1", click: () => openView(name)}, v.title)));
};

const openView = name => {
  stop();
  view = name;
  for (const tab of $("tabs").children) {
    const on = tab.id === "tab-" + name;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
  }
  $("panel").setAttribute("aria-labelledby", "tab-" + name);
  $("panel").replaceChildren();
  views[name].open(current, $("panel"));
};

$("tabs").addEventListener("keydown", e => {
  const tabs = [...$("tabs").children], at = tabs.indexOf(document.activeElement);
  const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1}[e.key];
  if (to === undefined || at < 0) return;
  e.preventDefault();
  const tab = tabs[(to + tabs.length) % tabs.length];
  tab.click();
  tab.focus();
});

const section = (title, ...children) => make("section", {"aria-label": title}, make("h2", {class: "sr"}, title), ...children);
const download = (blob, name) => make("a", {class: "more", href: URL.createObjectURL(blob), download: name}, "Download " + name + " (" + bytes(blob.size) + ")");
const baseName = source => source.path.split("/").pop();

/* The name of a file that is made of a source. */
const outName = (source, end) => baseName(source).replace(/\.(gz|lz4|zst)$/, "").replace(/\.(rdb|aof|manifest)$/, "") + end;

async function openVerdict(source, panel) {
  const box = section("Verdict", make("p", {class: "verdict odd", id: "headline"}, "Reading " + source.path + " …"));
  panel.append(box);
  const tool = source.kind === "log" ? "check-aof" : "check-rdb";
  let first = null;
  const began = performance.now();
  const result = await work("Checking " + source.path, {args: [tool, argument(source.path)], sources: [source]}, {
    progress: (at, total) => {
      first ??= performance.now() - began;
      const line = box.querySelector(".verdict");
      if (line) line.textContent = "No damage found so far: " + bytes(at) + (total ? " of " + bytes(total) : "") + " read";
    },
  });
  if (result.cancelled || current !== source || view !== "verdict") { if (box.isConnected) box.replaceChildren(make("p", {class: "verdict odd"}, "Cancelled. Nothing is known about the rest of the file.")); return; }
  box.replaceChildren(make("h2", {class: "sr"}, "Verdict"), ...report(result));
  box.dataset.status = String(result.status);
  box.dataset.seconds = result.seconds.toFixed(3);
  box.dataset.first = first === null ? "" : String(Math.round(first));
  const isSnapshot = source.kind === "snapshot";
  if (result.status === null || (result.status === 4 && !isSnapshot)) return;
  const saved = make("div", {id: "saved", role: "region", "aria-label": "Salvage"});
  const button = make("button", {type: "button", class: "more", id: "salvage", click: () => salvage(source, tool, saved)},
    result.status === 0 ? "Write a checked copy" : "Save what is intact");
  panel.append(section("Salvage", make("p", {class: "soft"}, isSnapshot
    ? "Writes the intact keys to a new snapshot, also those after the damage. The file itself is not changed."
    : "Writes the intact commands to a new log. The files themselves are not changed."), button, saved));
}

async function salvage(source, tool, box) {
  const name = outName(source, tool === "check-rdb" ? ".saved.rdb" : ".saved.aof");
  box.replaceChildren();
  const result = await work("Saving " + source.path, {args: [tool, "--force", "--salvage", argument(name), argument(source.path)], sources: [source], outputs: [name]});
  if (result.cancelled) return;
  const blob = result.made["/" + name];
  box.replaceChildren(...report(result));
  box.dataset.status = String(result.status);
  if (!blob) return;
  box.append(make("p", {class: "tools"}, download(blob, name),
    make("button", {type: "button", class: "more", click: () => addSource({path: name, files: [{path: name, file: blob}], kind: source.kind})}, "Open it here")));
}

/* A report that a tool writes as a page: shown in a frame that can do nothing but show it. */
const frame = async (blob, title) => {
  const el = make("iframe", {title, sandbox: "allow-scripts allow-downloads"});
  el.srcdoc = await blob.text();
  return el;
};

async function openReport(source, panel, {what, args, name, title, inputs}) {
  const box = section(title);
  panel.append(box);
  const result = await work(what, {args, sources: inputs || [source], outputs: [name]});
  if (result.cancelled || !box.isConnected) return;
  const blob = result.made["/" + name];
  if (!blob) { box.append(...report(result)); return; }
  panel.replaceChildren(make("div", {class: "tools"}, download(blob, name)), await frame(blob, title));
  if (result.error.trim()) panel.append(make("p", {class: "note"}, result.error.trim()));
  announce(title + " is ready");
}

async function openContents(source, panel) {
  const name = outName(source, ".report.html");
  await openReport(source, panel, {what: "Measuring " + source.path, name, title: "Contents and memory",
    args: ["stat", "--force", "--html", argument(name), argument(source.path)]});
}

/* ---- opening ---- */

$("pick-files").addEventListener("click", () => $("files").click());
$("pick-folder").addEventListener("click", () => $("folder").click());
$("files").addEventListener("change", e => { addFiles([...e.target.files].map(file => ({path: file.name, file}))); e.target.value = ""; });
$("folder").addEventListener("change", e => { addFiles([...e.target.files].map(file => ({path: file.webkitRelativePath, file}))); e.target.value = ""; });
$("cancel").addEventListener("click", stop);
document.addEventListener("keydown", e => { if (e.key === "Escape") stop(); });

/* All files below an entry of a drop. */
const walk = async (entry, into) => {
  if (entry.isFile) {
    const file = await new Promise((ok, no) => entry.file(ok, no));
    into.push({path: entry.fullPath.replace(/^\//, ""), file});
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((ok, no) => reader.readEntries(ok, no));
    if (some.length === 0) return;
    for (const child of some) await walk(child, into);
  }
};

for (const name of ["dragenter", "dragover"])
  document.addEventListener(name, e => { e.preventDefault(); $("drop").classList.add("over"); });
document.addEventListener("dragleave", () => $("drop").classList.remove("over"));
document.addEventListener("drop", async e => {
  e.preventDefault();
  $("drop").classList.remove("over");
  const entries = [...e.dataTransfer.items].map(item => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
  const files = [...e.dataTransfer.files], found = [];
  if (entries.length > 0) for (const entry of entries) await walk(entry, found);
  else found.push(...files.map(file => ({path: file.name, file})));
  await addFiles(found);
});
/* ---- redoubt browse: it gives files to this page, which asks nobody else ---- */

const fetchFile = async ({path, bytes: size}, id) => {
  $("job-text").textContent = "Fetching " + path + (size == null ? "" : " (" + bytes(size) + ")");
  $("job-bar").removeAttribute("value");
  $("job").hidden = false;
  announce($("job-text").textContent);
  try {
    const answer = await fetch("file/" + id, {cache: "no-store"});
    if (!answer.ok) throw Error(await answer.text() || "refused");
    return {path, file: new File([await answer.blob()], path.split("/").pop())};
  } finally { $("job").hidden = true; }
};

const fetchFiles = async (files, ids, box) => {
  try {
    const got = [];
    for (const id of ids) got.push(await fetchFile(files[id], id));
    await addFiles(got);
  } catch (e) {
    const text = "redoubt browse: " + e.message + (e instanceof TypeError ? ": does it still run?" : "");
    box.querySelector(".note")?.remove();
    box.append(make("p", {class: "note"}, text));
    announce(text);
  }
};

/* Files that belong together are opened at once, and each restore point when it is chosen. */
const openServed = async () => {
  const box = $("served"), answer = await fetch("list.json", {cache: "no-store"});
  const {files} = await answer.json(), together = [], rows = [];
  box.hidden = false;
  $("about").textContent = "Files come from redoubt browse on this computer. The page sends them nowhere.";
  files.forEach((f, id) => { if (!f.apart) together.push(id); });
  const button = (name, more, click) => make("li", {}, make("button", {type: "button", click}, name, make("small", {}, more)));
  files.forEach((f, id) => {
    if (f.apart || files.length === 1) rows.push(button(f.path, [f.time, f.bytes == null ? null : bytes(f.bytes)].filter(Boolean).join(", "), () => fetchFiles(files, [id], box)));
  });
  if (together.length > 1) rows.push(button("All files of the folder", together.length + " files", () => fetchFiles(files, together, box)));
  $("served-list").replaceChildren(...rows);
  if (together.length > 0) await fetchFiles(files, together, box);
};

if (document.querySelector("meta[name=redoubt-files]").content === "here")
  openServed().catch(e => announce("redoubt browse does not answer: " + e.message));
compile().catch(e => announce("This browser cannot run the page: " + e.message));
