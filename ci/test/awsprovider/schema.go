package main

import (
	_ "embed"
	"encoding/json"
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

//go:embed schema.json
var schemaText []byte

// schemas are those of the file, as the protocol has them.
func schemas() (*tfprotov5.GetProviderSchemaResponse, error) {
	var file struct {
		Providers map[string]tfjson.ProviderSchema `json:"provider_schemas"`
	}
	if err := json.Unmarshal(schemaText, &file); err != nil {
		return nil, fmt.Errorf("schema.json: %w", err)
	}
	known := &tfprotov5.GetProviderSchemaResponse{ResourceSchemas: map[string]*tfprotov5.Schema{}, DataSourceSchemas: map[string]*tfprotov5.Schema{}}
	for _, provider := range file.Providers {
		var err error
		if known.Provider, err = schemaOf(provider.ConfigSchema); err != nil {
			return nil, err
		}
		for name, schema := range provider.ResourceSchemas {
			if known.ResourceSchemas[name], err = schemaOf(schema); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		for name, schema := range provider.DataSourceSchemas {
			if known.DataSourceSchemas[name], err = schemaOf(schema); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return known, nil
}

func schemaOf(schema *tfjson.Schema) (*tfprotov5.Schema, error) {
	block, err := blockOf(schema.Block)
	return &tfprotov5.Schema{Version: int64(schema.Version), Block: block}, err
}

var nestings = map[tfjson.SchemaNestingMode]tfprotov5.SchemaNestedBlockNestingMode{
	tfjson.SchemaNestingModeSingle: tfprotov5.SchemaNestedBlockNestingModeSingle,
	tfjson.SchemaNestingModeList:   tfprotov5.SchemaNestedBlockNestingModeList,
	tfjson.SchemaNestingModeSet:    tfprotov5.SchemaNestedBlockNestingModeSet,
}

func blockOf(block *tfjson.SchemaBlock) (*tfprotov5.SchemaBlock, error) {
	made := &tfprotov5.SchemaBlock{}
	for name, attribute := range block.Attributes {
		text, err := attribute.AttributeType.MarshalJSON()
		if err != nil {
			return nil, err
		}
		//lint:ignore SA1019 there is no other that reads what OpenTofu writes
		typ, err := tftypes.ParseJSONType(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		made.Attributes = append(made.Attributes, &tfprotov5.SchemaAttribute{
			Name: name, Type: typ, Required: attribute.Required, Optional: attribute.Optional, Computed: attribute.Computed,
		})
	}
	for name, nested := range block.NestedBlocks {
		inside, err := blockOf(nested.Block)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		made.BlockTypes = append(made.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: name, Block: inside, Nesting: nestings[nested.NestingMode], MinItems: int64(nested.MinItems), MaxItems: int64(nested.MaxItems),
		})
	}
	return made, nil
}
