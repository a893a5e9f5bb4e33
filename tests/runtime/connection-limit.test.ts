import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { test } from "node:test";
import { limitConnections } from "../../src/runtime/connection-limit.ts";

/** A limit of 16 connections: 2 are reserved for this host, and each other device may hold 8. */
function limited() {
  let nowMs = 0;
  const server = new EventEmitter();
  const limit = limitConnections(server as Server, 16, () => nowMs);
  const connect = (remoteAddress: string) => {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      localAddress: "192.168.1.2",
      isOpen: true,
      destroy: () => {
        socket.isOpen = false;
        socket.emit("close");
      },
    });
    server.emit("connection", socket);
    return { socket, begin: () => limit.begin(socket as unknown as Socket), isOpen: () => socket.isOpen };
  };
  /** A connection whose client reads nothing. */
  const unread = (address: string) => {
    const connection = connect(address);
    connection.begin().writing();
    return connection;
  };
  /** A connection whose client reads, or whose response has no data yet. */
  const used = (address: string) => {
    const connection = connect(address);
    const request = connection.begin();
    request.writing();
    request.written();
    return connection;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { connect, unread, used, pass };
}

const open = (connections: readonly { isOpen(): boolean }[]) =>
  connections.filter((one) => one.isOpen()).length;
const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make);

test("limitConnections: unread connections of one device leave room for other devices and for this host", () => {
  const { unread, used, connect } = limited();
  const hostile = times(300, () => unread("192.168.1.66"));
  assert.equal(open(hostile), 8);
  assert.equal(open(times(6, () => used("192.168.1.7"))), 6);
  // Other devices hold all 14 connections that they may use; this host can use the other 2 by any of its addresses.
  assert.equal(connect("192.168.1.8").isOpen(), false);
  for (const local of ["127.0.0.1", "192.168.1.2"]) assert.equal(used(local).isOpen(), true);
});

test("limitConnections: when full, closes the longest unread connection of the device with the most connections", () => {
  const { unread, used, pass } = limited();
  const paused = unread("192.168.1.7");
  pass(1);
  const hostile = times(8, () => unread("192.168.1.66"));
  const others = times(5, () => used("192.168.1.9"));
  pass(5_000);
  assert.equal(used("192.168.1.8").isOpen(), true);
  assert.deepEqual([paused.isOpen(), hostile[0]!.isOpen(), open(hostile), open(others)], [true, false, 7, 5]);
});

test("limitConnections: closes idle connections first, and never one that is in use or was read within the last 5 s", () => {
  const { unread, used, connect, pass } = limited();
  const device = "192.168.1.66";
  const stalled = unread(device);
  const reading = times(6, () => used(device));
  const idle = connect(device);
  pass(4_999);
  assert.equal(used(device).isOpen(), true);
  assert.deepEqual([idle.isOpen(), stalled.isOpen()], [false, true]);
  assert.equal(connect(device).isOpen(), false);
  pass(1);
  assert.equal(used(device).isOpen(), true);
  assert.deepEqual([stalled.isOpen(), open(reading)], [false, 6]);
  pass(60_000);
  assert.equal(connect(device).isOpen(), false);
});

test("limitConnections: a new connection of one device does not close connections of a device that has fewer", () => {
  const { used, connect } = limited();
  const idle = times(6, () => connect("192.168.1.7"));
  times(8, () => used("192.168.1.66"));
  assert.equal(connect("192.168.1.66").isOpen(), false);
  assert.equal(open(idle), 6);
});

test("limitConnections: all addresses of an IPv6 /64 count as one device; closed connections do not count", () => {
  const { used, connect } = limited();
  const held = times(8, () => used("2001:db8::a"));
  assert.equal(connect("2001:db8::ffff").isOpen(), false);
  assert.equal(connect("2001:db8:0:1::1").isOpen(), true);
  held[0]!.socket.destroy();
  assert.equal(connect("2001:db8::ffff").isOpen(), true);
});
