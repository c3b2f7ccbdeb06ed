// Package devtest gives tests the servers they need and takes them away again.
// A package that uses it says so once:
//
//	func TestMain(m *testing.M) { devtest.Main(m, migrate) }
//
// and then asks for what it wants, in each test:
//
//	url := devtest.Database(t)            // a database of its own, migrated
//	addrs := devtest.Broker(t).Addrs()    // kfake, or a real Kafka
//	topic := devtest.Topic(t, addrs, 3)   // a topic of its own
//	pg := devtest.Postgres(t)             // a cluster it may break
//
// One PostgreSQL serves all tests of a process. It is started when the first
// test asks, the schema is migrated once, in a template, and each database is a
// copy of that. What cannot be started fails the test, with the remedy; no test
// is ever skipped.
//
// Environment:
//
//	PROJECTOR_TEST_DATABASE_URL  a running PostgreSQL to use instead, by a role that may create databases
//	PROJECTOR_TEST_BROKERS       running brokers to use instead, host:port,host:port
//	PROJECTOR_TEST_KAFKA         "real": Broker gives a real Kafka, one for the process; "fake" or empty: kfake
package devtest
