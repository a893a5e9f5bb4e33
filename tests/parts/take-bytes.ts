// `take-bytes.ts URL BYTES`: reads so many bytes of what is at a URL and prints their number; for tests whose player is in
// another network than they are.
import { argv, exit } from "node:process";

const [, , url, wished] = argv;
const response = await fetch(url!);
if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
let got = 0;
for await (const bytes of response.body!) {
  got += bytes.length;
  if (got >= Number(wished)) break;
}
console.log(`took ${got}`);
exit(got >= Number(wished) ? 0 : 1);
