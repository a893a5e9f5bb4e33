"""A libtorrent peer for tests: seeds or downloads one torrent and prints its events to stdout, one JSON line each.

usage: libtorrent_peer.py seed|leech TORRENT FOLDER [--peer HOST:PORT] [--sequential] [--exit] [--port N]
                          [--utp] [--encryption allowed|required|refused] [--host ADDRESS] [--dht HOST:PORT] [--lsd]
"""

import argparse
import json
import resource
import sys
import time

import libtorrent as lt


def say(**fields):
    print(json.dumps(fields), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["seed", "leech"])
    parser.add_argument("torrent", help="a .torrent file, or a magnet link")
    parser.add_argument("folder")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--sequential", action="store_true")
    parser.add_argument("--exit", action="store_true", help="end when the download is complete")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--upload-limit", type=int, default=0)
    parser.add_argument("--encryption", choices=["allowed", "required", "refused"], default="allowed")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--dht", help="HOST:PORT of a node by which the others are found")
    parser.add_argument("--utp", action="store_true", help="over uTP alone")
    parser.add_argument("--lsd", action="store_true", help="neighbours are looked for")
    options = parser.parse_args()

    policy = {
        "allowed": lt.enc_policy.pe_enabled, "required": lt.enc_policy.pe_forced, "refused": lt.enc_policy.pe_disabled,
    }[options.encryption]
    session = lt.session({
        "in_enc_policy": int(policy), "out_enc_policy": int(policy),
        "listen_interfaces": f"{options.host}:{options.port}",
        "enable_dht": options.dht is not None, "dht_bootstrap_nodes": options.dht or "", "enable_lsd": options.lsd, "enable_upnp": False, "enable_natpmp": False,
        "allow_multiple_connections_per_ip": True,
        "enable_outgoing_utp": options.utp, "enable_incoming_utp": options.utp,
        "enable_outgoing_tcp": not options.utp, "enable_incoming_tcp": not options.utp,
        "alert_mask": lt.alert.category_t.error_notification,
        # Loopback is not limited by rate, and a test does not wait for a choker's round.
        "unchoke_slots_limit": -1, "upload_rate_limit": options.upload_limit,
        "mixed_mode_algorithm": 0, "connection_speed": 500,
        # The seeder must not be what is measured.
        "send_buffer_watermark": 3 * 1024 * 1024, "send_buffer_low_watermark": 512 * 1024,
        "max_out_request_queue": 1000, "request_queue_time": 3,
    })
    if options.torrent.startswith("magnet:"):
        params = lt.parse_magnet_uri(options.torrent)
    else:
        params = lt.add_torrent_params()
        params.ti = lt.torrent_info(options.torrent)
    params.save_path = options.folder
    if options.role == "seed":
        params.flags |= lt.torrent_flags.seed_mode
    if options.sequential:
        params.flags |= lt.torrent_flags.sequential_download
    params.flags &= ~lt.torrent_flags.auto_managed
    params.flags &= ~lt.torrent_flags.paused
    handle = session.add_torrent(params)
    began = time.monotonic()
    for peer in options.peer:
        host, port = peer.rsplit(":", 1)
        handle.connect_peer((host, int(port)))
    say(event="listening", port=session.listen_port())

    done = False
    retry = began
    while True:
        time.sleep(0.02 if options.exit else 0.1)
        status = handle.status()
        if options.role == "leech" and not done and status.num_peers == 0 and time.monotonic() - retry > 1:
            retry = time.monotonic()
            for peer in options.peer:
                host, port = peer.rsplit(":", 1)
                handle.connect_peer((host, int(port)))
        if not done and status.is_seeding and options.role == "seed":
            # Before this state it closes incoming connections.
            done = True
            say(event="seeding")
        if not done and status.is_seeding and options.role == "leech":
            done = True
            used = resource.getrusage(resource.RUSAGE_SELF)
            say(event="complete", seconds=time.monotonic() - began, cpuSeconds=used.ru_utime + used.ru_stime,
                peakBytes=used.ru_maxrss * 1024, downloaded=status.total_payload_download)
            if options.exit:
                return
        for alert in session.pop_alerts():
            print(alert.message(), file=sys.stderr, flush=True)


main()
