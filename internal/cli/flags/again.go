package flags

import (
	"strings"

	"projector/readmodel"
)

// defaultTopic is the topic of a command that is typed without --topic.
const defaultTopic = "account-events"

// Again returns the flags with which another command chooses the same topic, projection and group,
// each after a space. Defaults are left out. Every text that proposes a command repeats these flags,
// because without them the command would change another reader, or none.
func (f *GroupFlags) Again(topic string) string {
	text := topicAgain(topic) + f.again(f.Projection)
	if f.GroupName() != (&GroupFlags{Projection: f.Projection}).GroupName() {
		text += " --group=" + shellWord(f.Group)
	}
	return text
}

// Again returns the flags with which another command chooses the same projection, each after a
// space. Defaults are left out.
func (f *BalanceFlags) Again() string { return f.again(f.Projection) }

// LettersAgain returns the flag with which another command chooses the same DLQ topic, after a
// space. It is empty if the name is the default for the topic.
func (f *KafkaFlags) LettersAgain() string {
	if name := f.DeadLetterTopic(); name != (&KafkaFlags{Topic: f.Topic}).DeadLetterTopic() {
		return " --dlq-topic=" + shellWord(name)
	}
	return ""
}

func topicAgain(topic string) string {
	if topic == defaultTopic || topic == "" {
		return ""
	}
	return " --topic=" + shellWord(topic)
}

func (f *FileFlags) again(projection string) string {
	switch {
	case f.ProjectionFile.Given():
		return " --projection-file=" + shellWord(f.ProjectionFile.String())
	case projection == "" || projection == readmodel.BalanceName:
		return ""
	}
	return " --projection=" + shellWord(projection)
}

// shellWord quotes a text for a shell if this is necessary.
func shellWord(text string) string {
	isPlain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-/:@+,", c)
	}
	if strings.IndexFunc(text, func(c rune) bool { return !isPlain(c) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
