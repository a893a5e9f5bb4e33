// Writes the test vectors of the live protocol anew: `bun tests/wire/write-live-vectors.ts`. Only after a change of the
// formats that is meant: what was written before is what others have built to.
import { writeFile } from "node:fs/promises";
import { allVectors, TRANSPORT_FILE } from "./live-vectors.ts";

const folder = new URL("../fixtures/live/", import.meta.url);
await writeFile(new URL("vectors.json", folder), `${JSON.stringify(allVectors(), null, 2)}\n`);
await writeFile(new URL("example.sluice", folder), TRANSPORT_FILE);
