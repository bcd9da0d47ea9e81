/* search.js - search.html?q=WORDS: the sections that have all words. `sections` is in
 * search-index.js: [page, title of the page, id of the section, its heading, its text]. */
"use strict";

const MOST = 50, BEFORE = 60, AROUND = 200;

function count(text, word) {
  let n = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) n++;
  return n;
}

/* 0: a word is missing. */
function score(section, words) {
  const [, title, , heading, text] = section.map((part) => part.toLowerCase());
  let sum = 0;
  for (const word of words) {
    const n = 20 * count(title, word) + 10 * count(heading, word) + Math.min(count(text, word), 5);
    if (n === 0) return 0;
    sum += n;
  }
  return sum;
}

/* Text with the words marked; never as HTML. */
function marked(text, words) {
  const out = document.createElement("span"), lower = text.toLowerCase();
  let at = 0;
  while (at < text.length) {
    let next = text.length, len = 0;
    for (const word of words) {
      const found = lower.indexOf(word, at);
      if (found >= 0 && found < next) [next, len] = [found, word.length];
    }
    out.append(text.slice(at, next));
    if (len > 0) {
      const mark = document.createElement("mark");
      mark.textContent = text.slice(next, next + len);
      out.append(mark);
    }
    at = next + len;
  }
  return out;
}

function excerpt(text, words) {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const from = places.length > 0 ? Math.max(0, Math.min(...places) - BEFORE) : 0;
  return (from > 0 ? "… " : "") + text.slice(from, from + AROUND) +
    (from + AROUND < text.length ? " …" : "");
}

function result(section, words) {
  const [page, title, id, heading, text] = section;
  const item = document.createElement("li"), link = document.createElement("a");
  link.href = page + (id ? "#" + id : "");
  link.append(marked(heading && heading !== title ? `${title}: ${heading}` : title, words));
  const line = document.createElement("p");
  line.append(marked(excerpt(text, words), words));
  item.append(link, line);
  return item;
}

function search() {
  const asked = new URLSearchParams(location.search).get("q") || "";
  const words = asked.toLowerCase().split(/\s+/).filter((word) => word !== "");
  document.querySelector("input[type=search]").value = asked;
  if (words.length === 0) return;
  const found = sections.map((section) => [score(section, words), section])
    .filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]);
  const n = found.length;
  document.getElementById("count").textContent =
    n === 0 ? `No section has ${asked}.` : n === 1 ? "1 section" : n > MOST ?
      `${n} sections, the first ${MOST} of them` : `${n} sections`;
  document.getElementById("found").replaceChildren(
    ...found.slice(0, MOST).map(([, section]) => result(section, words)));
}

search();
