(() => {
const versions = data.versions.map(([event, value]) => ({...event, value}));
const words = {snapshot: "in the snapshot", created: "created", changed: "changed", removed: "removed", expired: "expired", moved_here: "moved here", moved_away: "moved away", unknown: "unknown"};
const colours = {snapshot: "--rest", created: "--set", changed: "--accent", removed: "--past", unknown: "--mark"};
const several = data.keys > 1;
const title = data.names.length ? show(data.names[0]) + (several ? ` and ${plural(data.keys - 1, "more key")}` : "") : "Keys";
const moment = v => v.at === null ? "time unknown" : v.at.replace("T", " ").replace("Z", " UTC");

/* ---- head ---- */

document.title = title + " – history";
$("title").textContent = title;
$("sub").textContent = "From " + show(data.source);
const last = versions[versions.length - 1];
figure("Versions", count(data.total), data.total > versions.length ? `the last ${count(versions.length)} are on this page` : "");
figure("First", versions[0].at === null ? "unknown" : versions[0].at.slice(0, 10), moment(versions[0]));
figure("Last", last.at === null ? "unknown" : last.at.slice(0, 10), moment(last));
figure("At the end", last.type || words[last.event], last.type ? plural(last.length, last.type === "string" ? "byte" : "element") : "");

/* ---- the line ---- */

const timed = versions.every(v => v.ms !== undefined) && last.ms > versions[0].ms;
const lowest = timed ? Math.min(...versions.map(v => v.ms)) : 0, span = timed ? Math.max(...versions.map(v => v.ms)) - lowest : versions.length - 1;
const marks = versions.map((v, i) => {
  const mark = make("span", {class: v.event});
  mark.style.left = span ? 100 * (timed ? v.ms - lowest : i) / span + "%" : "50%";
  return mark;
});
$("line").append(...marks);
$("line").addEventListener("click", event => {
  const box = $("line").getBoundingClientRect(), at = 100 * (event.clientX - box.left) / box.width;
  let best = 0;
  const away = i => Math.abs(parseFloat(marks[i].style.left) - at);
  marks.forEach((_, i) => { if (away(i) < away(best)) best = i; });
  choose(best);
});
const legend = [["created", ["created", "moved_here"]], ["changed", ["changed"]], ["removed", ["removed", "expired", "moved_away"]], ["snapshot", ["snapshot"]], ["unknown", ["unknown"]]];
for (const [kind, events] of legend)
  if (versions.some(v => events.includes(v.event)))
    $("legend").append(make("li", {}, swatch(`var(${colours[kind]})`), words[kind]));

/* ---- a version ---- */

const fill = (list, lines, more, cls = () => undefined) => {
  list.replaceChildren(...lines.map(text => make("li", {class: cls(text)}, show(text))));
  if (more) list.append(make("li", {class: "soft"}, more));
  list.hidden = lines.length === 0;
};
const sign = text => text[0] === "+" ? "plus" : text[0] === "-" ? "minus" : undefined;

const showValue = v => {
  const lines = (v.value || []).filter(text => text !== null);
  fill($("value"), lines, v.value && lines.length < v.value.length ? `… only the first ${lines.length} are on this page` : "");
  $("length").textContent = v.type ? `${v.type}, ${plural(v.length, v.type === "string" ? "byte" : "element")}` : "";
  $("no-value").hidden = lines.length > 0;
  $("no-value").textContent = v.value === 0 ? "This value is not on this page: only those of the last versions are." : v.event === "unknown" ? "The value is unknown." : v.type ? "It is empty." : "The key does not exist.";
};

let at = -1;
const choose = i => {
  i = Math.max(0, Math.min(versions.length - 1, i));
  if (at >= 0) marks[at].classList.remove("now");
  at = i;
  const v = versions[i];
  marks[i].classList.add("now");
  $("slider").value = i + 1;
  $("slider").setAttribute("aria-valuetext", `Version ${i + 1}, ${moment(v)}, ${words[v.event]}`);
  $("about").textContent = `${count(i + 1)} of ${count(versions.length)}, ${moment(v)}`;
  $("version-title").textContent = `${v.place}${v.multi ? ", a transaction" : ""}, database ${v.db}`;
  $("summary").textContent = (several ? show(v.key) + " " : "") + show(v.summary);
  fill($("commands"), v.commands, v.more_commands ? `… and ${plural(v.more_commands, "command")}` : "");
  fill($("changes"), v.changes, v.more_changes ? `… and ${plural(v.more_changes, "change")}` : "", sign);
  $("no-changes").hidden = v.changes.length > 0;
  showValue(v);
  $("before").disabled = i === 0;
  $("after").disabled = i === versions.length - 1;
};
$("slider").max = versions.length;
$("slider").addEventListener("input", () => choose(Number($("slider").value) - 1));
$("before").addEventListener("click", () => choose(at - 1));
$("after").addEventListener("click", () => choose(at + 1));
choose(versions.length - 1);

/* ---- foot ---- */

const foot = text => $("foot").append(make("p", {}, text));
if (data.total > versions.length) foot(`The page has the last ${count(versions.length)} of ${plural(data.total, "version")}.`);
if (versions.some(v => v.value === 0)) foot("Values are shown for the last versions only, so that the page stays small.");
if (!data.who) foot("Which clients sent the commands was not recorded.");
foot("Made by redoubt history.");
})();
