package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// provider answers what a validation, a test and a first plan ask. Whatever else is called ends the process, since the interface is empty.
type provider struct {
	tfprotov5.ProviderServer
	known *tfprotov5.GetProviderSchemaResponse
}

func (p provider) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	return p.known, nil
}

func (p provider) PrepareProviderConfig(_ context.Context, r *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: r.Config}, nil
}

func (p provider) ConfigureProvider(context.Context, *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	return &tfprotov5.ConfigureProviderResponse{}, nil
}

func (p provider) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

func (p provider) ValidateResourceTypeConfig(context.Context, *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	return &tfprotov5.ValidateResourceTypeConfigResponse{}, nil
}

func (p provider) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}

// PlanResourceChange says of a resource that is going to be made what is known of it: all that the configuration says.
func (p provider) PlanResourceChange(_ context.Context, r *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.PlanResourceChangeResponse, error) {
	schema := p.known.ResourceSchemas[r.TypeName]
	planned, err := computed(r.ProposedNewState, schema, func(typ tftypes.Type) tftypes.Value { return tftypes.NewValue(typ, tftypes.UnknownValue) })
	return &tfprotov5.PlanResourceChangeResponse{PlannedState: planned}, err
}

// ReadDataSource makes up what AWS would have answered, the same for every text.
func (p provider) ReadDataSource(_ context.Context, r *tfprotov5.ReadDataSourceRequest) (*tfprotov5.ReadDataSourceResponse, error) {
	state, err := computed(r.Config, p.known.DataSourceSchemas[r.TypeName], func(typ tftypes.Type) tftypes.Value {
		if typ.Is(tftypes.String) {
			return tftypes.NewValue(typ, "aws")
		}
		return tftypes.NewValue(typ, nil)
	})
	return &tfprotov5.ReadDataSourceResponse{State: state}, err
}

// computed fills in what a provider computes and nobody has said.
func computed(value *tfprotov5.DynamicValue, schema *tfprotov5.Schema, with func(tftypes.Type) tftypes.Value) (*tfprotov5.DynamicValue, error) {
	typ := schema.ValueType()
	whole, err := value.Unmarshal(typ)
	if err != nil || whole.IsNull() {
		return value, err
	}
	filled, err := tftypes.Transform(whole, func(at *tftypes.AttributePath, one tftypes.Value) (tftypes.Value, error) {
		if one.IsKnown() && one.IsNull() && isComputed(schema.Block, at.Steps()) {
			return with(one.Type()), nil
		}
		return one, nil
	})
	if err != nil {
		return nil, err
	}
	made, err := tfprotov5.NewDynamicValue(typ, filled)
	return &made, err
}

// isComputed says whether a path leads to an attribute that the provider computes, through blocks or not.
func isComputed(block *tfprotov5.SchemaBlock, steps []tftypes.AttributePathStep) bool {
	for i, step := range steps {
		name, is := step.(tftypes.AttributeName)
		if !is {
			continue // an element of a list or a set of blocks
		}
		if i == len(steps)-1 {
			for _, attribute := range block.Attributes {
				if attribute.Name == string(name) {
					return attribute.Computed
				}
			}
			return false
		}
		var inner *tfprotov5.SchemaBlock
		for _, nested := range block.BlockTypes {
			if nested.TypeName == string(name) {
				inner = nested.Block
			}
		}
		if inner == nil {
			return false // within an attribute's own value
		}
		block = inner
	}
	return false
}

// UpgradeResourceState reads a state that this same schema has written: `tofu test` goes from one run to the next by it.
func (p provider) UpgradeResourceState(_ context.Context, r *tfprotov5.UpgradeResourceStateRequest) (*tfprotov5.UpgradeResourceStateResponse, error) {
	typ := p.known.ResourceSchemas[r.TypeName].ValueType()
	value, err := r.RawState.Unmarshal(typ)
	if err != nil {
		return nil, err
	}
	state, err := tfprotov5.NewDynamicValue(typ, value)
	return &tfprotov5.UpgradeResourceStateResponse{UpgradedState: &state}, err
}
