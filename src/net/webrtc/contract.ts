import type { TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { WebRtcSignaling } from "../contract.ts";

/** WebRTC connections behind the interface of TCP sockets. */
export interface WebRtc extends WebRtcSignaling {
  /** Sets the handler of connections that peers offered. */
  listen(accept: (socket: TcpSocket) => TcpHandlers): void;
  /** The number of open connections. */
  readonly size: number;
  /** Ends all connections. */
  close(): void;
}
