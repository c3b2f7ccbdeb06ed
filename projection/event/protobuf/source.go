package protobuf

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
)

// source is a file as a registry has it: .proto text, or a compiled file in Base64.
// Confluent's clients for Python, .NET and Go register the second, and not every
// registry makes the first of it. No .proto text is Base64: it has spaces.
func source(path, text string) (protocompile.SearchResult, error) {
	compiled := decoded(text)
	if len(compiled) == 0 {
		// What stands for a map in compiled files, Confluent's registry wrote into texts
		// until 2024, though nobody may. It is a repeated message without it.
		text = strings.ReplaceAll(text, "option map_entry = true;", "")
		return protocompile.SearchResult{Source: strings.NewReader(text)}, nil
	}
	var file descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(compiled, &file); err != nil {
		return protocompile.SearchResult{}, fmt.Errorf("%s is neither text nor a compiled file", path)
	}
	file.Name = &path // others import it by this one, whatever it was called
	// The compiler trusts what somebody else has compiled.
	if _, err := (protodesc.FileOptions{AllowUnresolvable: true}).New(&file, nil); err != nil {
		return protocompile.SearchResult{}, err
	}
	nameFields(file.GetMessageType())
	return protocompile.SearchResult{Proto: &file}, nil
}

// decoded is what a text says in Base64, nil when it is none.
func decoded(text string) []byte {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return raw
}

// nameFields gives fields the JSON names that a compiled file need not tell.
func nameFields(messages []*descriptorpb.DescriptorProto) {
	for _, m := range messages {
		for _, f := range m.GetField() {
			if f.JsonName == nil {
				f.JsonName = proto.String(jsonName(f.GetName()))
			}
		}
		nameFields(m.GetNestedType())
	}
}

// jsonName is accountId for account_id.
func jsonName(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" && word[0] >= 'a' && word[0] <= 'z' {
			words[i+1] = string(word[0]-'a'+'A') + word[1:]
		}
	}
	return strings.Join(words, "")
}
