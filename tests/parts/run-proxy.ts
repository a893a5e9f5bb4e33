// `run-proxy.ts HOST PORT [NAME=ADDRESS …]`: runs the test proxy as a process, for network namespaces; prints one line for each request.
import { startProxy } from "./proxy.ts";

const [host = "127.0.0.1", port = "0", ...words] = process.argv.slice(2);
const names = Object.fromEntries(words.map((word) => word.split("=")));
const proxy = await startProxy({ host, port: Number(port), names });
console.log(`listening ${proxy.port}`);
let told = 0;
setInterval(() => {
  for (; told < proxy.asked.length; told++) console.log(proxy.asked[told]);
}, 50);
