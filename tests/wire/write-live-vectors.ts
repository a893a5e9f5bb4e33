// Regenerates the test vectors of the live protocol: `bun tests/wire/write-live-vectors.ts`. Run it only after an intended change
// of the formats: other implementations rely on the present vectors.
import { writeFile } from "node:fs/promises";
import { allCases } from "./live-cases.ts";
import { allVectors, TRANSPORT_FILE } from "./live-vectors.ts";

const folder = new URL("../fixtures/live/", import.meta.url);
await writeFile(new URL("vectors.json", folder), `${JSON.stringify(allVectors(), null, 2)}\n`);
await writeFile(new URL("cases.json", folder), `${JSON.stringify(allCases(), null, 2)}\n`);
await writeFile(new URL("example.sluice", folder), TRANSPORT_FILE);
