import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { tempFolder } from "../parts/torrent-files.ts";
import { type Ran, runInProcess } from "./run-in-process.ts";

type Tool = (args: string, input?: string, isTyped?: boolean) => Promise<Ran>;

async function withFolder(work: (tool: Tool, dataDir: string) => Promise<void>) {
  const folder = await tempFolder("account");
  const dataDir = folder.file("data");
  try {
    await work(
      (args, input = "", isTyped = false) =>
        runInProcess(["account", ...args.split(" ").filter(Boolean)], { dataDir, input, isTyped }),
      dataDir,
    );
  } finally {
    await folder.remove();
  }
}

test("account add, list, password, remove: the password is a line of standard input, and no file contains it", () =>
  withFolder(async (tool, dataDir) => {
    assert.equal((await tool("list")).out, "");
    assert.deepEqual(await tool("add me@example.org", "correct horse\r\nmore"), {
      code: 0,
      out: "me@example.org can sign in\n",
      err: "",
    });
    assert.equal((await tool("list")).out, "me@example.org\n");
    assert.deepEqual(JSON.parse((await tool("list --json")).out), ["me@example.org"]);
    assert.match(
      (await tool("add ME@example.org", "correct horse\n")).err,
      /the account me@example\.org already exists/,
    );
    assert.equal((await tool("password me@example.org", "battery staple")).code, 0);
    assert.match(
      (await tool("password you@example.org", "battery staple")).err,
      /the account you@.* does not exist/,
    );
    for (const name of await readdir(join(dataDir, "library"))) {
      const text = await readFile(join(dataDir, "library", name), "latin1");
      assert.doesNotMatch(text, /correct horse|battery staple/, name);
    }
    assert.equal((await tool("remove me@example.org")).code, 0);
    assert.equal((await tool("list")).out, "");
    assert.equal((await tool("remove me@example.org")).code, 1);
  }));

test("account add: the password is typed twice without echo; backspace works, and Ctrl-C changes nothing", () =>
  withFolder(async (tool) => {
    const typed = await tool("add me@example.org", "correkt\x7f\x7ft horse\rcorret horse\r", true);
    assert.deepEqual(typed, {
      code: 0,
      out: "me@example.org can sign in\n",
      err: "Password: \nRepeat the password: \n",
    });
    const different = await tool("add you@example.org", "correct horse\rcorrect house\r", true);
    assert.equal(different.code, 2);
    assert.match(different.err, /differ; nothing was changed/);
    assert.match((await tool("add you@example.org", "corr\x03", true)).err, /nothing was changed/);
    assert.equal((await tool("list")).out, "me@example.org\n");
  }));

test("account: errors say what was expected and never repeat a password", () =>
  withFolder(async (tool) => {
    for (const args of ["", "dance", "list x", "add", "remove"])
      assert.equal((await tool(args)).code, 2, args);
    const short = await tool("add me@example.org", "hunter2");
    assert.deepEqual(short, {
      code: 1,
      out: "",
      err: "sluice: password: expected 8 to 1000 characters, got 7\n",
    });
    assert.match((await tool("add me@example.org", "x".repeat(100_000))).err, /a line of at most 4096 bytes/);
    assert.match((await tool("add nobody", "correct horse")).err, /email: expected an address/);
  }));

test("account limit: replaces the limits of an account, which the list shows", () =>
  withFolder(async (tool) => {
    await tool("add me@example.org", "correct horse");
    const limited = await tool("limit me@example.org --streams 2 --group News --group Sport");
    assert.equal(limited.out, "me@example.org: streams: 2; groups: News, Sport\n");
    assert.equal((await tool("list")).out, limited.out);
    assert.deepEqual(JSON.parse((await tool("limit me@example.org --group News --json")).out), {
      email: "me@example.org",
      max_streams: 0,
      groups: ["News"],
    });
    await tool("limit me@example.org");
    assert.equal((await tool("list")).out, "me@example.org\n");
    assert.match((await tool("limit you@example.org")).err, /the account you@example\.org does not exist/);
    assert.match((await tool("limit me@example.org --streams 1001")).err, /streams: expected 0 to 1000/);
    for (const args of ["limit", "limit me@example.org --streams two", "add me@example.org --streams 2"])
      assert.equal((await tool(args)).code, 2, args);
  }));
