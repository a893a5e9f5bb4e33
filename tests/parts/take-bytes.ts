// `take-bytes.ts URL BYTES`: reads up to BYTES bytes from URL and prints their number and SHA-1; for tests whose player
// runs in another network namespace.
import { createHash } from "node:crypto";
import { argv, exit } from "node:process";

const [, , url, wished] = argv;
const response = await fetch(url!);
if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
const hash = createHash("sha1");
let got = 0;
for await (const bytes of response.body!) {
  got += bytes.length;
  hash.update(bytes);
  if (got >= Number(wished)) break;
}
console.log(`took ${got} ${hash.digest("hex")}`);
exit(got >= Number(wished) ? 0 : 1);
