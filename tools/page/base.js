"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);

/* ---- text ---- */

/* Escapes invalid bytes, control characters and characters that change the text direction. */
const show = text => text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu, c => {
  const n = c.codePointAt(0);
  if (n >= 0xdc80 && n <= 0xdcff) return "\\x" + (n - 0xdc00).toString(16);
  return n < 0x100 ? "\\x" + n.toString(16).padStart(2, "0") : "\\u" + n.toString(16);
});
const count = n => n.toLocaleString("en-US");
const bytes = n => {
  if (n < 1024) return count(n) + " B";
  let unit = -1;
  do { n /= 1024; unit++; } while (n >= 1023.5 && unit < 5);
  return (n < 9.95 ? n.toFixed(1) : n.toFixed(0)) + " " + ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][unit];
};
const percent = (part, whole) => {
  const share = whole ? 100 * part / whole : 0;
  return share > 0 && share < 0.1 ? "< 0.1 %" : (share > 0 && share < 9.95 ? share.toFixed(1) : share.toFixed(0)) + " %";
};
const time = ms => {
  const date = new Date(ms);
  return isNaN(date) ? count(ms) + " ms" : date.toISOString().slice(0, 16).replace("T", " ");
};
const plural = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");

/* All text is inserted as text nodes. */
const make = (tag, attrs = {}, ...children) => {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs))
    if (value !== undefined && value !== false) el.setAttribute(name, value === true ? "" : value);
  el.append(...children.filter(child => child !== null));
  return el;
};

/* A figure at the head of the page. */
const figure = (term, value, note) =>
  $("figures").append(make("div", {class: "figure"}, make("dt", {}, term), make("dd", {}, value, make("small", {}, note))));
