/* host.js - functions of host.h for the compiler of emscripten. The page gives the object `host`
 * (files.js), which has the bytes. */
mergeInto(LibraryManager.library, {
  host_find: function(path, file) {
    var found = Module["host"].find(UTF8ToString(path));
    if (found.kind === 1) HEAP32[file >> 2] = found.file;
    return found.kind;
  },
  host_create: function(path) {
    return Module["host"].create(UTF8ToString(path));
  },
  host_link: function(from, to) {
    Module["host"].link(UTF8ToString(from), UTF8ToString(to));
  },
  host_remove: function(path) {
    return Module["host"].remove(UTF8ToString(path));
  },
  host_rename: function(from, to) {
    Module["host"].rename(UTF8ToString(from), UTF8ToString(to));
  },
  host_entry: function(path, i, name, cap) {
    var names = Module["host"].list(UTF8ToString(path));
    return i < names.length ? stringToUTF8(names[i], name, cap) : -1;
  },
  host_size: function(file) {
    return Module["host"].size(file);
  },
  host_changed: function(file) {
    return Module["host"].changed(file);
  },
  host_resize: function(file, size) {
    Module["host"].resize(file, size);
  },
  host_read: function(file, at, buf, len) {
    return Module["host"].read(file, at, HEAPU8.subarray(buf, buf + len));
  },
  host_write: function(file, at, buf, len) {
    return Module["host"].write(file, at, HEAPU8.subarray(buf, buf + len));
  },
  host_drop: function(file) {
    Module["host"].drop(file);
  },
  host_random: function(buf, len) {
    var bytes = new Uint8Array(len);
    crypto.getRandomValues(bytes);
    HEAPU8.set(bytes, buf);
  },
  /* Standard output and the errors, in the order in which they are written. */
  fd_write: function(fd, pieces, n, written) {
    var sum = 0;
    for (var i = 0; i < n; i++) {
      var at = HEAPU32[(pieces >> 2) + 2 * i], len = HEAPU32[(pieces >> 2) + 2 * i + 1];
      Module["host"].output(fd, HEAPU8.slice(at, at + len));
      sum += len;
    }
    HEAPU32[written >> 2] = sum;
    return 0;
  },
  fd_close: function() {
    return 0;
  },
  fd_seek: function() {
    return 70; /* ESPIPE */
  },
});
