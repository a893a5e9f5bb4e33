import { writeFileSync } from "node:fs";
import { openApiDocument } from "../routes/openapi.ts";
import { VERSION } from "../src/settings/version.ts";

// Writes docs/openapi.json anew: `npm run openapi`. A test says when that is due.
const file = new URL("../docs/openapi.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(openApiDocument(VERSION), null, 1)}\n`);
