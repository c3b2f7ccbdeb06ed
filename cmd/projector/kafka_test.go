package main

import "testing"

func TestCheckBroker(t *testing.T) {
	for address, good := range map[string]bool{
		"localhost:9092": true, "kafka-0.kafka.svc": true, "10.0.0.1:19092": true, "[::1]:9092": true, "::1": true,
		"localhost:99999": false, "host:port:port": false, "a b": false, "": false, ":9092": false,
		"host:": false, "host:0": false, "http://host:9092": false, "user@host:9092": false,
	} {
		if err := checkBroker(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}
