import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { runtimeCommand } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run, startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("openssl");

const ASK = fileURLToPath(new URL("./ask-https.ts", import.meta.url));
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** Creates a certificate authority and a certificate for `tracker.test`. */
async function makeCertificate(scratch: TempFolder): Promise<void> {
  const at = (name: string) => scratch.file(name);
  const authority = ["-keyout", at("ca.key"), "-out", at("ca.pem"), "-subj", "/CN=authority", "-days", "2"];
  await run("openssl", ["req", "-x509", ...KEY, ...authority, "-addext", "keyUsage=keyCertSign"]);
  const asked = ["-keyout", at("own.key"), "-out", at("own.csr"), "-subj", "/CN=tracker.test"];
  await run("openssl", ["req", ...KEY, ...asked]);
  await writeFile(at("own.ext"), "subjectAltName=DNS:tracker.test,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n");
  const signed = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial", "-out", at("own.pem")];
  const request = ["x509", "-req", "-in", at("own.csr"), "-days", "2", "-extfile", at("own.ext"), ...signed];
  await run("openssl", request);
}

/** A server that responds with the client's server name (SNI, RFC 6066 3). */
async function serveTls(scratch: TempFolder): Promise<Server> {
  const [key, cert] = await Promise.all([
    readFile(scratch.file("own.key")),
    readFile(scratch.file("own.pem")),
  ]);
  const server = createServer({ key, cert }, (request, response) => {
    response.end(`name ${(request.socket as TLSSocket).servername || "none"}, host ${request.headers.host}`);
  });
  // A client that refuses the certificate aborts the handshake.
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** Sends a request in a new process, because trusted authorities are read at process start. */
async function ask(url: string, authority: string | undefined, way = "direct"): Promise<string> {
  const [command, ...args] = runtimeCommand();
  const trust = authority && { NODE_EXTRA_CA_CERTS: authority, DENO_CERT: authority };
  const asking = startProcess(command, [...args, ASK, url, "127.0.0.1", way], {
    cwd: ROOT,
    env: { ...trust },
  });
  try {
    return await asking.line((line) => /^(?:answer|refused) /.test(line));
  } finally {
    await asking.stop();
  }
}

test("HttpClient: verifies TLS against the URL's host, whatever the address", {
  timeout: 120_000,
}, async () => {
  const scratch = await tempFolder("https");
  let server: Server | undefined;
  try {
    await makeCertificate(scratch);
    server = await serveTls(scratch);
    const { port } = server.address() as AddressInfo;
    const authority = scratch.file("ca.pem");
    const good = await ask(`https://tracker.test:${port}/`, authority);
    assert.match(good, new RegExp(`^answer 200 name (?:tracker\\.test|none), host tracker\\.test:${port}$`));
    assert.match(await ask(`https://tracker.test:${port}/`, authority, "dialled"), /^answer 200 /);
    assert.match(await ask(`https://other.test:${port}/`, authority, "dialled"), /^refused /);
    assert.match(await ask(`https://127.0.0.1:${port}/`, authority, "dialled"), /^answer 200 /);
    assert.match(await ask(`https://127.0.0.1:${port}/`, authority), /^answer 200 /);
    assert.match(await ask(`https://other.test:${port}/`, authority), /^refused /);
    assert.match(await ask(`https://tracker.test:${port}/`, undefined), /^refused /);
  } finally {
    server?.close();
    await scratch.remove();
  }
});
