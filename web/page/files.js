/* files.js - the files of one run, in a worker: inputs that are read in slices, and files that the
 * run makes. What does not fit into the memory that is allowed here is kept in blobs, which the
 * browser may write to the disk: the memory of the page does not grow with a file. */
"use strict";

const BLOCK = 1 << 20;       /* of a file that the run makes */
const SLICE = 4 << 20;       /* of an input: what is read at a time */
const SLICES_KEPT = 3;
const BLOCKS_KEPT = 12;      /* in memory, of all files */

/* Frees bytes now. The browser collects them late, when hundreds of MiB are there; a message that
 * nobody can receive takes them away. */
const free = bytes => {
  const {port1, port2} = new MessageChannel();
  port2.close();
  port1.postMessage(null, [bytes.buffer]);
  port1.close();
};

/* The last used entries of a map, of which the others are given to `leave`. */
class Recent {
  constructor(limit, leave) { this.map = new Map(); this.limit = limit; this.leave = leave; }
  get(key) {
    const value = this.map.get(key);
    if (value !== undefined) { this.map.delete(key); this.map.set(key, value); }
    return value;
  }
  set(key, value) {
    this.map.delete(key);
    this.map.set(key, value);
    if (this.map.size <= this.limit) return;
    const [oldest, of] = this.map.entries().next().value;
    this.map.delete(oldest);
    this.leave(of);
  }
}

/* An input. `bytes(from, to)` gives a part of it at once; a worker may wait. */
class Input {
  constructor(name, size, changed, bytes) {
    Object.assign(this, {name, size, changed, bytes});
    this.slices = new Recent(SLICES_KEPT, free);
  }
  slice(i) {
    let found = this.slices.get(i);
    if (!found) {
      found = this.bytes(i * SLICE, Math.min(this.size, (i + 1) * SLICE));
      this.slices.set(i, found);
    }
    return found;
  }
  read(at, to) {
    let n = 0;
    const len = Math.max(0, Math.min(to.length, this.size - at));
    while (n < len) {
      const i = Math.floor((at + n) / SLICE), from = at + n - i * SLICE, slice = this.slice(i);
      const piece = slice.subarray(from, from + len - n);
      if (piece.length === 0) break; /* the file became shorter */
      to.set(piece, n);
      n += piece.length;
    }
    return n;
  }
  write() { return -1; }
  resize() {}
  drop() {}
}

/* A file that the run makes. */
class Made {
  constructor(recent, load, store) {
    Object.assign(this, {recent, load, store});
    this.size = 0;
    this.changed = Date.now() / 1000;
    this.blocks = []; /* {bytes} or {blob} */
  }
  block(i) {
    let block = this.blocks[i];
    if (!block) block = this.blocks[i] = {bytes: new Uint8Array(BLOCK), dirty: true};
    if (!block.bytes) { block.bytes = new Uint8Array(BLOCK); block.bytes.set(this.load(block.kept)); block.dirty = false; }
    if (this.recent.get(block) === undefined) this.recent.set(block, {block, store: this.store});
    return block;
  }
  read(at, to) {
    const len = Math.max(0, Math.min(to.length, this.size - at));
    for (let n = 0; n < len;) {
      const i = Math.floor((at + n) / BLOCK), from = at + n - i * BLOCK, m = Math.min(BLOCK - from, len - n);
      to.set(this.block(i).bytes.subarray(from, from + m), n);
      n += m;
    }
    return len;
  }
  write(at, bytes) {
    for (let n = 0; n < bytes.length;) {
      const i = Math.floor((at + n) / BLOCK), from = at + n - i * BLOCK, m = Math.min(BLOCK - from, bytes.length - n);
      const block = this.block(i);
      block.bytes.set(bytes.subarray(n, n + m), from);
      block.dirty = true;
      n += m;
    }
    this.size = Math.max(this.size, at + bytes.length);
    return bytes.length;
  }
  resize(size) {
    if (size < this.size) {
      const n = Math.ceil(size / BLOCK);
      this.blocks.length = Math.min(this.blocks.length, n);
      if (size % BLOCK !== 0 && this.blocks[n - 1]) {
        const block = this.block(n - 1);
        block.bytes.fill(0, size % BLOCK);
        block.dirty = true;
      }
    }
    this.size = size;
  }
  drop() { this.blocks = []; this.size = 0; }
  /* Its parts, for a blob. */
  parts() {
    const parts = [];
    for (let i = 0; i * BLOCK < this.size; i++) {
      const len = Math.min(BLOCK, this.size - i * BLOCK), block = this.blocks[i];
      if (!block) parts.push(new Uint8Array(len));
      else if (block.bytes) parts.push(block.bytes.subarray(0, len));
      else parts.push(len === BLOCK ? block.kept : block.kept.slice(0, len));
    }
    return parts;
  }
}

/* The object `host` of host.js. `store` makes a blob of bytes and `load` bytes of a blob. */
class Host {
  constructor({load, store, output}) {
    Object.assign(this, {load, store, output});
    this.files = [];         /* by number */
    this.names = new Map();  /* path: number */
    this.recent = new Recent(BLOCKS_KEPT, ({block, store}) => {
      if (block.dirty) block.kept = store(block.bytes);
      free(block.bytes);
      block.bytes = null;
    });
  }
  add(path, file) { this.names.set(path, this.files.push(file) - 1); }
  list(path) {
    const base = path === "/" ? path : path + "/", found = new Set();
    for (const name of this.names.keys())
      if (name.startsWith(base)) found.add(name.slice(base.length).split("/")[0]);
    return [...found];
  }
  find(path) {
    if (this.names.has(path)) return {kind: 1, file: this.names.get(path)};
    const folder = path === "/" || path === "/tmp" || this.list(path).length > 0;
    return {kind: folder ? 2 : 0};
  }
  create(path) {
    this.add(path, new Made(this.recent, this.load, this.store));
    return this.files.length - 1;
  }
  link(from, to) { this.names.set(to, this.names.get(from)); }
  remove(path) {
    const file = this.names.get(path);
    this.names.delete(path);
    return [...this.names.values()].filter(other => other === file).length;
  }
  rename(from, to) {
    this.names.set(to, this.names.get(from));
    this.names.delete(from);
  }
  size(file) { return this.files[file].size; }
  changed(file) { return this.files[file].changed; }
  resize(file, size) { this.files[file].resize(size); }
  read(file, at, to) {
    try { return this.files[file].read(at, to); } catch { return -1; }
  }
  write(file, at, bytes) {
    try { return this.files[file].write(at, bytes); } catch { return -1; }
  }
  drop(file) { this.files[file].drop(); }
  made(path) { return this.files[this.names.get(path)]; }
}
