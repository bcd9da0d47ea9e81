// Writes through the Sentinels on the given ports, and prints a line for each write that succeeded:
// its time, and the port of the server.
"use strict";

const path = require("path");
const Redis = require(path.join(process.argv[2], "ioredis"));

const client = new Redis({
  name: "mine",
  sentinels: process.argv.slice(3).map((port) => ({ host: "127.0.0.1", port: Number(port) })),
  maxRetriesPerRequest: 1,
  connectTimeout: 1000,
  commandTimeout: 1000,
  sentinelRetryStrategy: () => 50,
  retryStrategy: () => 50,
});
client.on("error", () => {});

async function write() {
  try {
    await client.incr("ioredis");
    const [, port] = await client.config("GET", "port");
    console.log(`${Date.now()} ${port}`);
  } catch (e) {
    // it tries again
  }
  setTimeout(write, 20);
}

process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
write();
