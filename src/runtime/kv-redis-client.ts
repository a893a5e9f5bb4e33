import { readFile } from "node:fs/promises";
import { Cluster, Redis } from "ioredis";
import { SluiceError } from "../base/errors.ts";

/** What the store needs of a connection. Commands reject at once while the server cannot be reached. */
export interface RedisClient {
  /** Runs a script; the server keeps it, so that later calls send only its hash. */
  run(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  command(name: string, ...args: readonly string[]): Promise<unknown>;
  /** The reason why there is no connection; undefined if there is one. */
  readonly problem: string | undefined;
  close(): void;
}

const TLS_FILES = ["ca", "cert", "key"] as const;
type TlsFile = (typeof TLS_FILES)[number];

/** Where a store is. */
export interface RedisPlace {
  readonly kind: "single" | "sentinel" | "cluster";
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** The name of the master and the password of the sentinels, for Sentinel. */
  readonly master: string | undefined;
  readonly sentinelPassword: string | undefined;
  readonly isTls: boolean;
  /** Paths of PEM files for TLS: the authority of the server's certificate, and the certificate and key of this engine. */
  readonly tlsFiles: Readonly<Partial<Record<TlsFile, string>>>;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
  /** Name of the store on the server. */
  readonly name: string;
}

const EXPECTED =
  "expected redis://[user:password@]host[:port][/database][?name=…], rediss:// for TLS (with ca=, cert= and key= for PEM files), redis+sentinel://host,host/master (with sentinel-password= if they have one) or redis+cluster://host,host";

const PATTERN =
  /^(redis|rediss|valkey|valkeys)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^/?#]+)(?:\/([^?#]*))?(?:\?(.*))?$/;

/** Parses the URL of a store. Throws `bad_configuration`. */
export function parseRedisUrl(url: string): RedisPlace {
  const match = PATTERN.exec(url);
  if (!match) throw new SluiceError("bad_configuration", `store: ${EXPECTED}`);
  const [, scheme = "", kind, user = "", list = "", path = "", options = ""] = match;
  const defaultPort = kind === "sentinel" ? 26_379 : 6379;
  const hosts = list.split(",").map((each) => {
    const [, host, bracketed, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(each) ?? [];
    const number = Number(port ?? defaultPort);
    if (!(host ?? bracketed) || number < 1 || number > 65_535)
      throw new SluiceError("bad_configuration", `store: ${EXPECTED}`);
    return { host: (host ?? bracketed)!, port: number };
  });
  if ((kind === undefined && hosts.length > 1) || (kind === "sentinel" && path === ""))
    throw new SluiceError("bad_configuration", `store: ${EXPECTED}`);
  if (kind !== "sentinel" && !/^\d{0,3}$/.test(path))
    throw new SluiceError("bad_configuration", `store: ${EXPECTED}`);
  const isTls = scheme.endsWith("s") && scheme !== "redis";
  const {
    name = "main",
    "sentinel-password": sentinelPassword,
    ...tlsFiles
  } = Object.fromEntries(new URLSearchParams(options));
  const areTlsFiles = Object.entries(tlsFiles).every(
    ([option, file]) => TLS_FILES.includes(option as TlsFile) && file !== "",
  );
  const isNoTls = !isTls && Object.keys(tlsFiles).length > 0;
  const isNoSentinel = kind !== "sentinel" && sentinelPassword !== undefined;
  if (!areTlsFiles || isNoTls || isNoSentinel || !/^[\w-]{1,64}$/.test(name))
    throw new SluiceError("bad_configuration", `store: ${EXPECTED}`);
  const [username, password] = user.includes(":") ? splitOnce(user) : ["", user];
  return {
    kind: kind === "sentinel" || kind === "cluster" ? kind : "single",
    hosts,
    master: kind === "sentinel" ? path : undefined,
    sentinelPassword,
    isTls,
    tlsFiles,
    username: decoded(username) || undefined,
    password: decoded(password) || undefined,
    database: kind === "sentinel" ? 0 : Number(path || 0),
    name,
  };
}

/** A server in the same network answers a connection and a command within this time; a commit may wait for a disk. */
const CONNECT_MS = 5_000;
const COMMAND_MS = 10_000;
const MAX_RETRY_MS = 2_000;

/** Options of `tls.connect`. */
type TlsOptions = Readonly<Partial<Record<TlsFile, string>>>;

/** Reads the files that the URL names; undefined without TLS. Rejects with `bad_configuration`. */
export async function readTlsFiles({ isTls, tlsFiles }: RedisPlace): Promise<TlsOptions | undefined> {
  if (!isTls) return undefined;
  const read = async ([option, path]: [string, string]) =>
    [
      option,
      await readFile(path, "utf8").catch((error: Error) => {
        throw new SluiceError("bad_configuration", `store: cannot read ${option}: ${error.message}`);
      }),
    ] as const;
  return Object.fromEntries(await Promise.all(Object.entries(tlsFiles).map(read)));
}

/** Opens the connections; `tls` is the result of {@link readTlsFiles}. Commands fail after `commandTimeout` (ms). They are established again when they break; the first one is not awaited. */
export function connectRedis(
  place: RedisPlace,
  tls: TlsOptions | undefined,
  commandTimeout = COMMAND_MS,
): RedisClient {
  const { username, password, hosts, kind, master, sentinelPassword, database } = place;
  const retryStrategy = (attempt: number) => Math.min(100 * attempt, MAX_RETRY_MS);
  const options = {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls }),
    // Replies have one shape, whatever the version of the server.
    protocol: 2 as const,
    connectTimeout: CONNECT_MS,
    commandTimeout,
    // A connection that has lost its network is replaced: TCP would send again only after a minute or two.
    socketTimeout: commandTimeout,
    // A command that cannot be sent now fails now: the store decides what is repeated.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // The master has become a replica: Sentinel names the new one.
    reconnectOnError: ({ message }: Error) => message.startsWith("READONLY"),
    retryStrategy,
  };
  const redis =
    kind === "cluster"
      ? new Cluster([...hosts], {
          redisOptions: options,
          enableOfflineQueue: false,
          clusterRetryStrategy: retryStrategy,
        })
      : kind === "sentinel"
        ? new Redis({
            ...options,
            sentinels: [...hosts],
            name: master!,
            ...(sentinelPassword !== undefined && { sentinelPassword }),
            ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
          })
        : new Redis({ ...options, ...hosts[0]!, db: database });
  let problem: string | undefined = "not connected yet";
  redis.on("error", (error: Error) => {
    problem = error.message || "connection failed";
  });
  redis.on("close", () => {
    problem ??= "the server closed the connection";
  });
  redis.on("ready", () => {
    problem = undefined;
  });
  const names = new Map<string, string>();
  const methods = redis as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
  return {
    run(script, keys, args) {
      let name = names.get(script);
      if (name === undefined) {
        name = `sluice${names.size}`;
        names.set(script, name);
        redis.defineCommand(name, { lua: script });
      }
      return methods[name]!(keys.length, ...keys, ...args);
    },
    command: (name, ...args) => redis.call(name, ...args),
    get problem() {
      return problem;
    },
    close: () => redis.disconnect(),
  };
}

/** Decodes a user or password. Throws `bad_configuration`, without the text. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new SluiceError("bad_configuration", "store: write % in the user and password as %25");
  }
}

function splitOnce(user: string): [string, string] {
  const at = user.indexOf(":");
  return [user.slice(0, at), user.slice(at + 1)];
}
