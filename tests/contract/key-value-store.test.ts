import assert from "node:assert/strict";
import { openStore } from "../../src/runtime/open-store.ts";
import { keyValueSuite } from "./key-value-suite.ts";

const warn = (message: string) => assert.fail(message);
const openKind = (kind: "sqlite" | "memory") => (folder: string) =>
  openStore({ folder: `${folder}/sub/records`, kind, shared: false, warn });

keyValueSuite("memory", openKind("memory"), { isForgetful: true });
keyValueSuite("sqlite", openKind("sqlite"));
