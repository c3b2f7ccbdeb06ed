package devstack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
)

// clusterName is the cluster's name, which Patroni calls the scope.
const clusterName = "projector"

// These are Patroni's time limits in seconds. Patroni 3 allows no shorter leaderTTL. A leader that
// does not renew its key for leaderTTL is replaced. A leader that cannot reach etcd for
// etcdPatience demotes itself before leaderTTL ends.
const (
	leaderTTL    = 20
	loopWait     = 2
	etcdPatience = 5
)

func (n *PatroniNode) name() string   { return "node" + strconv.Itoa(n.number) }
func (n *PatroniNode) data() string   { return filepath.Join(n.dir, "data") }
func (n *PatroniNode) config() string { return filepath.Join(n.dir, "patroni.yml") }

// configure writes the node's configuration file in JSON, which is also valid YAML.
func (n *PatroniNode) configure() error {
	p := n.of
	etcd, err := p.between(Way{Node: n.number, ToEtcd: true}, p.etcdAddr)
	if err != nil {
		return err
	}
	replication, err := p.between(Way{Node: n.number}, n.addr)
	if err != nil {
		return err
	}
	type object = map[string]any
	file := object{
		"scope": clusterName, "name": n.name(),
		"restapi": object{"listen": n.rest, "connect_address": n.rest},
		// With use_proxies, Patroni connects only to this address. Otherwise it would learn the
		// real address from etcd and bypass the proxy.
		"etcd3": object{"hosts": []string{etcd}, "use_proxies": true},
		"bootstrap": object{
			"dcs": object{
				"ttl": leaderTTL, "loop_wait": loopWait, "retry_timeout": etcdPatience,
				"synchronous_mode": p.synchronous,
				// A standby that lags by some seconds may still be promoted.
				"maximum_lag_on_failover": 1 << 30,
				"postgresql": object{
					"use_pg_rewind": true, "use_slots": true,
					"remove_data_directory_on_rewind_failure":     true,
					"remove_data_directory_on_diverged_timelines": true,
					"parameters": postgresSettings(map[string]string{"unix_socket_directories": ""}),
				},
			},
			"initdb": []any{object{"encoding": "UTF8"}, object{"locale": "C"}, object{"auth": "scram-sha-256"}},
		},
		"postgresql": object{
			"listen": n.addr, "connect_address": replication,
			"data_dir": n.data(), "bin_dir": p.binaries, "pgpass": filepath.Join(n.dir, "pgpass"),
			"pg_hba": []string{"host all all 127.0.0.1/32 scram-sha-256", "host replication all 127.0.0.1/32 scram-sha-256"},
			"authentication": object{
				"superuser":   object{"username": superuser, "password": p.password},
				"replication": object{"username": "replicator", "password": p.password},
			},
		},
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(n.config(), text, 0o600); err != nil {
		return err
	}
	for _, path := range []string{n.dir, n.config()} {
		if err := p.account.own(path); err != nil {
			return err
		}
	}
	return nil
}
