/* worker.js - runs one tool in a worker. The page sends one message: the compiled module, the
 * arguments, the inputs and the names of the outputs; it ends the worker to cancel. */
"use strict";

const reader = new FileReaderSync();
const bytesOf = blob => new Uint8Array(reader.readAsArrayBuffer(blob));

self.onmessage = async ({data: {module, args, inputs, outputs}}) => {
  const texts = [null, new TextDecoder(), new TextDecoder()];
  let ahead = "", held = 0;
  const say = () => {
    if (ahead) postMessage({text: ahead});
    ahead = "";
    held = 0;
  };
  const host = new Host({
    load: bytesOf,
    store: bytes => new Blob([bytes]),
    output: (fd, bytes) => {
      const text = texts[fd].decode(bytes, {stream: true});
      if (fd === 2) { say(); postMessage({error: text}); return; }
      ahead += text;
      if ((held += bytes.length) > 65536) say();
    },
  });
  for (const {path, file} of inputs)
    host.add(path, new Input(path, file.size, (file.lastModified || Date.now()) / 1000,
      (from, to) => bytesOf(file.slice(from, to))));
  try {
    const tool = await redoubt({
      host,
      noInitialRun: true,
      thisProgram: "redoubt",
      instantiateWasm: (imports, done) => {
        WebAssembly.instantiate(module, imports).then(instance => done(instance));
        return {};
      },
    });
    const status = tool.callMain(args);
    say();
    const made = {};
    for (const path of outputs) {
      const file = host.made(path);
      if (file) made[path] = new Blob(file.parts());
    }
    postMessage({status, made});
  } catch (e) {
    say();
    postMessage({failed: String(e && e.message || e)});
  }
};
