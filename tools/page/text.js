"use strict";
const $ = id => document.getElementById(id);

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
const plural = (n, one, many = one + "s") => count(n) + " " + (n === 1 ? one : many);

/* All text is inserted as text nodes. A function as an attribute listens to the event of that name. */
const make = (tag, attrs = {}, ...children) => {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (typeof value === "function") el.addEventListener(name, value);
    else if (value !== undefined && value !== false && value !== null) el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...children.filter(child => child !== null && child !== undefined));
  return el;
};
