"""A DHT node of libtorrent for tests: reads orders from stdin and prints events to stdout, one JSON line each.

usage: libtorrent_dht.py [--node HOST:PORT]
"""

import argparse
import hashlib
import json
import sys
import tempfile
import threading
import time

import libtorrent as lt


def say(**fields):
    print(json.dumps(fields), flush=True)


def expanded(seed):
    """The secret key as libtorrent requires it (RFC 8032 5.1.5)."""
    key = bytearray(hashlib.sha512(seed).digest())
    key[0] &= 248
    key[31] = (key[31] & 63) | 64
    return bytes(key)


def do(session, order):
    kind = order["do"]
    if kind == "node":
        session.add_dht_node((order["host"], order["port"]))
    elif kind == "put":
        target = session.dht_put_immutable_item(order["value"].encode())
        say(event="target", target=str(target))
    elif kind == "get":
        session.dht_get_immutable_item(lt.sha1_hash(bytes.fromhex(order["target"])))
    elif kind == "put-mutable":
        public = bytes.fromhex(order["key"])
        session.dht_put_mutable_item(
            expanded(bytes.fromhex(order["seed"])), public, order["value"].encode(), order["salt"].encode()
        )
    elif kind == "get-mutable":
        session.dht_get_mutable_item(bytes.fromhex(order["key"]), order["salt"].encode())
    elif kind == "announce":
        # The bindings cannot announce without a torrent.
        torrent = lt.parse_magnet_uri("magnet:?xt=urn:btih:" + order["infohash"])
        torrent.save_path = tempfile.gettempdir()
        session.add_torrent(torrent).force_dht_announce()
    elif kind == "peers":
        session.dht_get_peers(lt.sha1_hash(bytes.fromhex(order["infohash"])))


def item_of(alert):
    """The members of an item; None values if the alert has no item."""
    try:
        item = alert.item
        return {"value": item["value"].decode("latin-1"), "sequence": item.get("seq")}
    except (AttributeError, RuntimeError):
        return {"value": None, "sequence": None}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--node")
    options = parser.parse_args()
    session = lt.session({
        "listen_interfaces": "127.0.0.1:0",
        "enable_dht": True, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
        "dht_bootstrap_nodes": options.node or "",
        "dht_restrict_routing_ips": False, "dht_restrict_search_ips": False, "dht_ignore_dark_internet": False,
        "alert_mask": lt.alert.category_t.all_categories, 
    })

    def obey():
        for line in sys.stdin:
            do(session, json.loads(line))

    threading.Thread(target=obey, daemon=True).start()
    say(event="listening", port=session.listen_port())
    nodes = 0
    while True:
        session.post_dht_stats()
        session.wait_for_alert(100)
        for alert in session.pop_alerts():
            if isinstance(alert, lt.dht_stats_alert):
                count = sum(bucket["num_nodes"] for bucket in alert.routing_table)
                if count != nodes:
                    nodes = count
                    say(event="nodes", count=count)
            elif isinstance(alert, lt.dht_immutable_item_alert):
                say(event="item", target=str(alert.target), **item_of(alert))
            elif isinstance(alert, lt.dht_mutable_item_alert):
                say(event="mutable", **item_of(alert))
            elif isinstance(alert, lt.dht_put_alert):
                say(event="put", stored=alert.num_success)
            elif isinstance(alert, lt.dht_get_peers_reply_alert):
                say(event="peers", peers=[f"{host}:{port}" for host, port in alert.peers()])
        time.sleep(0.05)


main()
