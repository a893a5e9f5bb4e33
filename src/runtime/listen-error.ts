import { SluiceError } from "../base/errors.ts";

/** Error codes of a failed `listen` or `bind` (POSIX), and what they mean. */
const REASONS: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRNOTAVAIL: (host) => `this machine has no address ${host}`,
  EACCES: (_, port) =>
    port < 1024 ? "permission denied; ports below 1024 need extra rights" : "permission denied",
  EPERM: () => "permission denied",
  EAFNOSUPPORT: () => "this system does not support that kind of address",
  EINVAL: (host) => `${host} is not an address that this machine can listen on`,
};

/**
 * Converts the error of a failed `listen` or `bind` to a `SluiceError`: `port_busy` if another program uses the port,
 * `bad_parameter` for every other reason. `protocol` is `TCP` or `UDP`.
 */
export function listenError(
  error: NodeJS.ErrnoException,
  protocol: "TCP" | "UDP",
  { host, port }: { readonly host: string; readonly port: number },
): SluiceError {
  const options = { cause: error };
  if (error.code === "EADDRINUSE")
    return new SluiceError("port_busy", `${protocol} port ${port} at ${host} is in use`, options);
  const reason = REASONS[error.code ?? ""]?.(host, port) ?? error.message;
  return new SluiceError(
    "bad_parameter",
    `cannot listen on ${host} ${protocol} port ${port}: ${reason}`,
    options,
  );
}
