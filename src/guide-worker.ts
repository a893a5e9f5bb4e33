// The entry of the thread that reads programme guides.
import { runtime } from "#runtime";
import { createGuideReader, serveGuideReading } from "./library/guide/guide-reading.ts";
import { workerPort } from "./runtime/worker.ts";

serveGuideReading(workerPort(), createGuideReader(runtime.files, runtime.discarded));
