/* For page_checks.py: returns a list of what is wrong with the page. */
const found = [];
const visible = el => el.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && el.getClientRects().length > 0;
const said = el => el.id ? "#" + el.id : el.tagName.toLowerCase() + "." + el.className + " " + JSON.stringify(el.textContent.slice(0, 30));
const all = [...document.querySelectorAll("body *")].filter(visible);

/* ---- contrast ---- */
const parse = text => {
  const n = text.match(/[\d.]+/g).map(Number);
  return {rgb: n.slice(0, 3), a: n.length > 3 ? n[3] : 1};
};
const over = (top, below) => top.rgb.map((c, i) => c * top.a + below[i] * (1 - top.a));
const background = el => {
  if (!el) return [255, 255, 255];
  const own = parse(getComputedStyle(el).backgroundColor);
  return own.a === 1 ? own.rgb : over(own, background(el.parentElement));
};
const luminance = rgb => {
  const [r, g, b] = rgb.map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
for (const el of all) {
  const own = [...el.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  if (!own || el.closest(".sr")) continue;
  const style = getComputedStyle(el), back = background(el);
  let alpha = 1;
  for (let up = el; up; up = up.parentElement) alpha *= Number(getComputedStyle(up).opacity);
  const ink = parse(style.color);
  const front = over({rgb: ink.rgb, a: ink.a * alpha}, back);
  const [hi, lo] = [luminance(front), luminance(back)].sort((a, b) => b - a);
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const ratio = (hi + 0.05) / (lo + 0.05);
  if (ratio < (large ? 3 : 4.5)) found.push("contrast " + ratio.toFixed(2) + ": " + said(el));
}

/* ---- names and structure ---- */
const nameOf = el => {
  const by = (el.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean);
  const labelled = by.map(id => document.getElementById(id)).map(n => n ? n.textContent : "").join(" ");
  return (el.getAttribute("aria-label") || labelled || el.textContent || el.title || "").trim();
};
for (const el of all)
  if (el.matches("a[href], button, input, select, textarea, nav, [role=group], [role=img], section") && !nameOf(el)) found.push("no name: " + said(el));
for (const el of document.querySelectorAll("[aria-labelledby], [aria-describedby]"))
  for (const id of (el.getAttribute("aria-labelledby") || el.getAttribute("aria-describedby")).split(" "))
    if (!document.getElementById(id)) found.push("no element #" + id);
const ids = [...document.querySelectorAll("[id]")].map(el => el.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push("two elements #" + id);
let level = 0;
for (const el of all.filter(el => /^H[1-6]$/.test(el.tagName))) {
  const n = Number(el.tagName[1]);
  if (n > level + 1) found.push("heading h" + n + " after h" + level + ": " + said(el));
  level = n;
}
if (document.querySelectorAll("main").length !== 1) found.push("no single main");
if (!document.documentElement.lang) found.push("no language");
if (!document.title) found.push("no title");
for (const el of all) {
  if (el.tagName === "IMG" && !el.hasAttribute("alt")) found.push("no alt: " + said(el));
  if (el.tagName === "TH" && !el.scope) found.push("no scope: " + said(el));
}

/* ---- focus ---- */
const stops = all.filter(el => el.tabIndex >= 0);
for (const el of stops) if (el.tabIndex > 0) found.push("tabindex " + el.tabIndex + ": " + said(el));
let above = null;
for (const el of stops) {
  const box = el.getBoundingClientRect();
  if (el.matches(".skip")) continue;
  if (above && box.bottom < above.top) found.push("focus goes up: " + said(el));
  above = box;
}
for (const el of all)
  if (el.scrollWidth > el.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(el).overflowX) && el.tabIndex < 0)
    found.push("scrolls without focus: " + said(el));
return [...new Set(found)];
