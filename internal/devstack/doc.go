// Package devstack starts what the projector talks to, on this machine and for
// one process: a broker inside the process (kfake), a real Apache Kafka, Kafka
// Connect with Debezium, a schema registry, a real PostgreSQL. It is what the demos
// and the tests run on, so that neither needs Docker, a service manager or a
// prepared host.
//
//	Fake      kfake, a few milliseconds. Speaks the protocol, takes injected faults.
//	Kafka     Apache Kafka in KRaft mode, 1 or 3 nodes, from Maven Central. Needs java and mvn.
//	Connect   Kafka Connect with Debezium's PostgreSQL connector, from Maven Central.
//	Registry  Apicurio Registry, with Confluent's API, from Maven Central.
//	Postgres  initdb and postgres from this machine, else downloaded once.
//
// Servers listen on 127.0.0.1 only, on ports from below the range the kernel
// hands out to outgoing connections: a stopped server finds its port free again.
// A context given to a start function limits the start and not the life of the
// server; the server lives until Stop or Close. Should this process die without
// getting there, Linux ends the servers with it; on other systems they stay.
//
// Data goes to a fresh temporary folder, removed by Close, or to a folder the
// caller names, which is kept and taken up again by the next start.
//
// PostgreSQL refuses to run as root: a caller who is root gets it as user
// postgres or nobody, with a data folder that this user owns.
package devstack
