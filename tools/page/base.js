const data = JSON.parse(document.getElementById("data").textContent);

/* ---- text ---- */

const percent = (part, whole) => {
  const share = whole ? 100 * part / whole : 0;
  return share > 0 && share < 0.1 ? "< 0.1 %" : (share > 0 && share < 9.95 ? share.toFixed(1) : share.toFixed(0)) + " %";
};
const time = ms => {
  const date = new Date(ms);
  return isNaN(date) ? count(ms) + " ms" : date.toISOString().slice(0, 16).replace("T", " ");
};

/* A figure at the head of the page. */
const figure = (term, value, note) =>
  $("figures").append(make("div", {class: "figure"}, make("dt", {}, term), make("dd", {}, value, make("small", {}, note))));

const swatch = colour => {
  const el = make("span", {class: "dot"});
  el.style.backgroundColor = colour;
  return el;
};

/* Fills a list with horizontal bars: rows have name, value, note, colour. */
const bars = (list, rows, whole, format) => {
  const most = Math.max(1, ...rows.map(row => row.value));
  list.replaceChildren(...rows.map(row => {
    const fill = make("div", {class: "fill"});
    fill.style.width = 100 * row.value / most + "%";
    fill.style.backgroundColor = row.colour || "";
    fill.hidden = row.value === 0;
    return make("li", {},
      make("div", {class: "row"},
        make("span", {class: "name"}, row.name),
        make("span", {class: "value"}, format(row.value), make("small", {}, row.note || percent(row.value, whole)))),
      make("div", {class: "track", "aria-hidden": "true"}, fill));
  }));
};

/* Fills a list with vertical bars: columns have label, value, text, and act (they are buttons then). */
const columns = (list, rows) => {
  const most = Math.max(1, ...rows.map(row => row.value)), every = Math.ceil(rows.length / 5);
  list.replaceChildren(...rows.map((row, i) => {
    const fill = make("span", {class: "fill"});
    fill.style.height = row.value ? Math.max(2, 100 * row.value / most) + "%" : "0";
    const bar = make(row.act ? "button" : "span", {class: "bar", title: row.text, "aria-label": row.act && row.text, type: row.act && "button",
      "aria-pressed": row.act && String(Boolean(row.on)), tabindex: row.act && (row.stop ? "0" : "-1")}, fill);
    if (row.act) bar.addEventListener("click", row.act);
    return make("li", {}, bar, row.act ? null : make("span", {class: "sr"}, row.text),
      make("span", {class: "at", "aria-hidden": "true"}, i % every === 0 ? row.label : ""));
  }));
};

/* ---- CSV ---- */

const utf8 = new TextEncoder();
/* As `redoubt stat --csv`: bytes that are not printable ASCII are \xHH, and so is the first character
 * if a spreadsheet would read a formula. */
const csvText = text => {
  const hex = n => "\\x" + n.toString(16).padStart(2, "0");
  const plain = [...text].map(c => {
    const n = c.codePointAt(0);
    if (c === "\\") return "\\\\";
    if (n >= 0x20 && n < 0x7f) return c;
    return n >= 0xdc80 && n <= 0xdcff ? hex(n - 0xdc00) : [...utf8.encode(c)].map(hex).join("");
  }).join("").replace(/^[=+\-@]/, c => hex(c.charCodeAt(0)));
  return '"' + plain.replaceAll('"', '""') + '"';
};
const csvCell = value => value === undefined || value === null ? "" : typeof value === "number" ? String(value) : csvText(value);

const saveCsv = (name, head, rows) => {
  const lines = [head.join(","), ...rows.map(row => row.map(csvCell).join(","))];
  const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], {type: "text/csv"}));
  const link = make("a", {href: url, download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};

/* ---- tables ---- */

/* A table whose columns sort it. A column has title, cell (text or a node), order, csv and head (its
 * name there), left (text, not a number), unit (of narrow screens), wide (the name of the row). */
const grid = ({table, cols, by, limit, more}) => {
  let down = !cols[by].left, all = false, rows = [];
  const head = table.tHead.rows[0], body = table.tBodies[0];
  const draw = () => {
    const order = cols[by].order, sorted = [...rows].sort((a, b) => {
      const x = order(a), y = order(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    const shown = all ? sorted : sorted.slice(0, limit);
    body.replaceChildren(...shown.map(row => make("tr", {}, ...cols.map(col =>
      make(col.wide ? "th" : "td", {scope: col.wide && "row", class: (col.wide ? "key mono" : "") + (col.left ? " left" : ""), "data-unit": col.unit && col.unit(row)}, col.cell(row))))));
    cols.forEach((col, i) => i === by ? head.cells[i].setAttribute("aria-sort", down ? "descending" : "ascending") : head.cells[i].removeAttribute("aria-sort"));
    more.hidden = shown.length === rows.length;
    more.textContent = "Show all " + count(rows.length);
    table.hidden = rows.length === 0;
  };
  cols.forEach((col, i) => {
    const button = make("button", {type: "button"}, col.title);
    button.addEventListener("click", () => { down = by === i ? !down : !col.left; by = i; draw(); });
    head.append(make("th", {scope: "col", class: col.left && "left"}, button));
  });
  more.addEventListener("click", () => { all = true; draw(); });
  return {
    fill(list) { rows = list; all = false; draw(); },
    save(name) { saveCsv(name, cols.map(col => col.head), rows.map(row => cols.map(col => col.csv(row)))); },
  };
};
