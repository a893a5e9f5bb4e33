import assert from "node:assert/strict";
import { test } from "node:test";
import { listenError } from "../../src/runtime/listen-error.ts";

const failed = (code: string, host: string, port: number) =>
  listenError(Object.assign(new Error(`listen ${code}`), { code }), "TCP", { host, port });

test("listenError: a port in use is port_busy, every other reason is bad_parameter and names the reason", () => {
  const busy = failed("EADDRINUSE", "127.0.0.1", 6878);
  assert.equal(busy.code, "port_busy");
  assert.equal(busy.message, "TCP port 6878 at 127.0.0.1 is in use");
  const cases: [code: string, host: string, port: number, text: RegExp][] = [
    [
      "EADDRNOTAVAIL",
      "10.9.9.9",
      6878,
      /^cannot listen on 10\.9\.9\.9 TCP port 6878: this machine has no address/,
    ],
    ["EACCES", "127.0.0.1", 80, /permission denied; ports below 1024 need extra rights$/],
    ["EACCES", "127.0.0.1", 8080, /permission denied$/],
    ["EAFNOSUPPORT", "::1", 6878, /does not support/],
    ["ENOBUFS", "::1", 6878, /listen ENOBUFS$/],
  ];
  for (const [code, host, port, text] of cases) {
    const error = failed(code, host, port);
    assert.equal(error.code, "bad_parameter", code);
    assert.match(error.message, text);
  }
});
