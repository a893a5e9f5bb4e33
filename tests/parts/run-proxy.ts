// `run-proxy.ts HOST PORT [no-udp]`: the tests' proxy as a process of its own, for namespaces; a line for all it is asked.
import { startProxy } from "./proxy.ts";

const [host = "127.0.0.1", port = "0", ...words] = process.argv.slice(2);
const proxy = await startProxy({ host, port: Number(port), udp: !words.includes("no-udp") });
console.log(`listening ${proxy.port}`);
let told = 0;
setInterval(() => {
  for (; told < proxy.asked.length; told++) console.log(proxy.asked[told]);
}, 50);
