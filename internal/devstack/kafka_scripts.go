package devstack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kafkaScripts has the names of Kafka's scripts and the Java class that each script runs.
var kafkaScripts = map[string]string{
	"kafka-topics.sh":           "org.apache.kafka.tools.TopicCommand",
	"kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
}

// WriteKafkaScripts writes the scripts for topics and for producing records into dir. The jars from
// Maven hold the classes that the scripts run, but not the scripts. The first call on a machine
// downloads the jars.
func WriteKafkaScripts(ctx context.Context, dir string) error {
	java, err := findJava()
	if err != nil {
		return err
	}
	lib, err := fetchKafka(ctx)
	if err != nil {
		return err
	}
	k := &Kafka{java: java, lib: lib, log: serverLog(nil)}
	k.usePrepared(ctx)
	for name, class := range kafkaScripts {
		words := k.javaCommand(ctx, class).Args
		for i, word := range words {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		text := "#!/bin/sh\nexec " + strings.Join(words, " ") + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
