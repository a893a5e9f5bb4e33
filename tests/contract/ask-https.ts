// `ask-https.ts URL ADDRESS [dialled]`: one request with the runtime's own client, as the engine makes it, over a connection
// of its own or over one that is dialled for it; prints what came.
import { runtime } from "#runtime";
import type { Dial } from "../../src/runtime/contract.ts";

const [url, connectTo, way] = process.argv.slice(2);
const address = { host: connectTo!, port: Number(new URL(url!).port) };
const dial: Dial = (handlers) => runtime.net.connect(address, handlers, { timeoutMs: 10_000 });
try {
  const { status, body } = await runtime.http.request({
    url: new URL(url!),
    ...(way === "dialled" ? { dial, connectTo: "203.0.113.1" } : { connectTo: connectTo! }),
    method: "GET",
    headers: {},
    timeoutMs: 10_000,
  });
  console.log(`answer ${status} ${await new Response(body).text()}`);
} catch (error) {
  console.log(`refused ${(error as { code?: string }).code} ${(error as Error).message}`);
}
