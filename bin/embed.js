// The package's main module for Node, which runs no TypeScript in node_modules: tsx compiles it.
import { tsImport } from "tsx/esm/api";

const { startEngine } = await tsImport("../src/embed.ts", import.meta.url);

export { startEngine };
